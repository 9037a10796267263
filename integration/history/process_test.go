package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/rpc"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/integration/internal/witness"
)

// process is a Child, and those that come after it: it ends or is killed, and begins again on the same
// folder, with handlers that know nothing of those before, perhaps in front of another cluster.
type process struct {
	dir   string
	front *front
	// at is the cluster that the front leads to.
	at *cluster
	// running is nil while there is no process.
	running *runningChild
	// astray says that the process runs in front of another cluster than it began with. It need not notice
	// that: no watch does.
	astray bool
	// shown is the latest version of each object that the caches have shown.
	shown map[string]map[types.UID]uint64
	tally tally
}

// tally counts what has happened to processes.
type tally struct {
	begun, ended, killed int
	// swapsAway are swaps while there was no process, behind those of all swaps to a cluster with lower
	// resource versions.
	swaps, swapsAway, behind int
	// resumed counts the informers that went on from what an earlier process kept.
	resumed, events int
	// latest is what the running process has told of the two.
	latest struct{ resumed, events int }
}

// String implements fmt.Stringer.
func (t tally) String() string {
	return fmt.
		Sprintf(
			"%d processes, of which %d ended and %d were killed, in which %d informers resumed and %d events were delivered; %d swaps of the server, %d of them while there was no process, %d to lower resource versions",
			t.begun, t.ended, t.killed, t.resumed+t.latest.resumed, t.events+
				t.latest.events, t.swaps, t.swapsAway, t.behind)
}

// runningChild is a process that runs.
type runningChild struct {
	*rpc.Client
	command *exec.Cmd
	stdin   io.Closer
}

func newProcess(w *world) *process {
	w.Helper()
	p := &process{dir: w.TempDir(), front: newFront(w, w.cluster, w.other), at: w.cluster}
	w.Cleanup(func() {
		if c := p.running; c != nil { // the test has failed
			_ = c.command.Process.Kill()
			_ = c.command.Wait()
			_ = c.Close()
		}
	})
	return p
}

// begin begins a process, unless there is one.
func (w *world) begin(p *process) {
	w.Helper()
	if p.running != nil {
		return
	}
	p.tally.begun++
	p.shown = map[string]map[types.UID]uint64{}
	options := childOptions{
		Name: "process " + strconv.Itoa(p.tally.begun), Host: p.front.URL, Authority: p.front.CA,
		Folder: p.dir, Namespaces: w.namespaces, Types: gvrs(w.kinds),
	}
	text, err := json.Marshal(options)
	if err != nil {
		w.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	c := &runningChild{command: exec.Command(program)}
	c.command.Env = append(os.Environ(), childVariable+"="+string(text), "GORACE=halt_on_error=1")
	c.command.Stderr = os.Stderr
	stdin, err := c.command.StdinPipe() // whose end it ends with
	if err != nil {
		w.Fatal(err)
	}
	stdout, err := c.command.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := c.command.Start(); err != nil {
		w.Fatal(err)
	}
	c.stdin = stdin
	c.Client = rpc.NewClient(struct {
		io.Reader
		io.WriteCloser
	}{stdout, stdin})
	p.running = c
	w.look(p, false) // when it has begun
}

// end ends a process, if there is one, or kills it.
func (w *world) end(p *process, killed bool) {
	w.Helper()
	if p.running == nil {
		return
	}
	w.look(p, false)
	c := p.running
	if killed {
		p.tally.killed++
		if err := c.command.Process.Kill(); err != nil {
			w.Error(err)
		}
	} else {
		p.tally.ended++
		w.ask("GoOn", struct{}{}, &struct{}{})
		w.look(p, false)
		w.ask("End", struct{}{}, &struct{}{})
	}
	_ = c.Close() // with its standard input
	if err := c.command.Wait(); err != nil && !killed {
		w.Errorf("the process: %v", err)
	}
	p.running, p.astray = nil, false
	p.tally.resumed += p.tally.latest.resumed
	p.tally.events += p.tally.latest.events
	p.tally.latest.resumed, p.tally.latest.events = 0, 0
}

// toggle has a handler of a process wait, or go on.
func (w *world) toggle(p *process, number int) {
	w.Helper()
	if p.running != nil {
		w.ask("Toggle", number, &struct{}{})
	}
}

// ask calls a method of the process.
func (w *world) ask(method string, argument, answer any) {
	w.Helper()
	select {
	case call := <-w.process.running.Go("Child."+method, argument, answer, nil).Done:
		if call.Error != nil {
			w.Fatalf("%s of the process: %v", method, call.Error)
		}
	case <-time.After(3 * time.Minute):
		w.Fatalf("%s of the process is not answered", method)
	}
}

// look asks a process how it is. It fails the test for what made no sense, for what was never written, and
// where a cache shows an object older than before, also while that is not confirmed yet.
func (w *world) look(p *process, whole bool) *Report {
	w.Helper()
	report := &Report{}
	if p.running == nil {
		return report
	}
	w.ask("Look", whole, report)
	p.tally.latest.resumed, p.tally.latest.events = 0, 0
	for _, i := range report.Informers {
		if i.Resumed {
			p.tally.latest.resumed++
		}
		p.tally.latest.events += i.Events
		if p.astray { // what it shows is of two clusters
			continue
		}
		if p.shown[i.Name] == nil {
			p.shown[i.Name] = map[types.UID]uint64{}
		}
		w.checkShown(i, p.shown[i.Name])
	}
	if p.astray {
		report.Nonsense = nil
	}
	for _, line := range report.Nonsense {
		w.Error(line)
	}
	return report
}

func (w *world) checkShown(i InformerReport, shown map[types.UID]uint64) {
	w.Helper()
	for key, o := range i.Objects {
		version, err := strconv.ParseUint(o.Version, 10, 64)
		if before := shown[o.UID]; err != nil || version < before {
			w.Errorf("%s shows %s at %q after %d", i.Name, key, o.Version, before)
		}
		shown[o.UID] = version
	}
	for _, last := range i.Last {
		for uid, value := range last {
			o := w.kinds[i.Type].known[uid]
			if o == nil {
				o = w.other.kinds[i.Type].known[uid]
			}
			if o == nil || value > o.value {
				w.Errorf("%s was told the value %d of %s, which was never written: %+v",
					i.Name, value, uid, o)
			}
		}
	}
}

// swap has the front lead to the other cluster. A process meets no third one: that it has been elsewhere can
// only be known while it is.
func (w *world) swap(p *process) {
	w.Helper()
	if p.astray {
		w.end(p, true)
	}
	w.look(p, false)
	next := w.other
	if p.at == next {
		next = w.cluster
	}
	p.tally.swaps++
	if p.running == nil {
		p.tally.swapsAway++
	}
	if next.version() < p.at.version() {
		p.tally.behind++
	}
	p.front.swap(next)
	p.at, p.astray = next, p.running != nil
}

// restarts has a process end or be killed, and begin again, a few times in a round, and its server be
// swapped, at steps that at picks.
func (w *world) restarts(r *rand.Rand, at func(from, steps int, happen func()) int) {
	w.Helper()
	for range 3 {
		killed := r.IntN(3) > 0
		ended := at(0, stepsPerRound*3/4, func() { w.end(w.process, killed) })
		at(ended, stepsPerRound/4, func() { w.begin(w.process) })
	}
	for range r.IntN(4) {
		overtakes := r.IntN(3) == 0
		at(0, stepsPerRound, func() {
			if overtakes {
				w.overtake()
			}
			w.swap(w.process)
		})
	}
}

// settleProcess has a process that knows where it is agree with the server.
func (w *world) settleProcess(p *process) {
	w.Helper()
	if p.astray {
		w.end(p, true)
	}
	w.begin(p)
	w.ask("GoOn", struct{}{}, &struct{}{})
	harness.Eventually(w, func(ctx context.Context) error {
		for _, i := range w.look(p, true).Informers {
			if err := p.at.agreesWith(ctx, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// agreesWith compares what an informer of a process shows, and what its handlers were told, with what the
// cluster lists, and that with what was written.
func (c *cluster) agreesWith(ctx context.Context, i InformerReport) error {
	if i.Trouble != "" {
		return fmt.Errorf("%s: %s", i.Name, i.Trouble)
	}
	k := c.kinds[i.Type]
	list, err := c.list(ctx, k)
	if err != nil {
		return err
	}
	server, cached := map[string]string{}, map[string]string{}
	for _, o := range list {
		server[o.GetNamespace()+"/"+o.GetName()] = jsonOf(o)
	}
	for key, o := range i.Objects {
		cached[key] = o.JSON
	}
	if diff := cmp.Diff(server, cached); diff != "" {
		return fmt.Errorf("%s (-server +cache):\n%s", i.Name, diff)
	}
	for n, told := range i.Told {
		if diff := cmp.Diff(k.expected(), withoutNil(told)); diff != "" {
			return fmt.Errorf("handler %d of %s (-written +told):\n%s", n, i.Name, diff)
		}
	}
	if !i.Tracked {
		return nil
	}
	return c.follows(ctx, k, i.Name, i.UID)
}

// withoutNil returns an empty map for what an empty one has become on its way.
func withoutNil(m map[string]witness.Object) map[string]witness.Object {
	if m == nil {
		return map[string]witness.Object{}
	}
	return m
}

// version returns the resource version that the cluster has come to.
func (c *cluster) version() uint64 {
	c.Helper()
	list, err := c.admin.Resource(namespacesResource).List(c.ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		c.Fatal(err)
	}
	version, err := strconv.ParseUint(list.GetResourceVersion(), 10, 64)
	if err != nil {
		c.Fatal(err)
	}
	return version
}

// overtake has the cluster with the lower resource versions get the higher ones.
func (w *world) overtake() {
	w.Helper()
	behind, ahead := w.cluster, w.other
	if behind.version() > ahead.version() {
		behind, ahead = ahead, behind
	}
	for n := ahead.version() - behind.version(); n > 0; n-- {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"n":%q}}}`, strconv.FormatUint(n, 10))
		if _, err := behind.admin.Resource(namespacesResource).Patch(w.ctx, w.namespaces[0],
			types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

var namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
