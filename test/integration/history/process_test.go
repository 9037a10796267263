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

	"github.com/crdcache/crdcache/test/integration/harness"
)

// process is a Child and its successors. It ends or is killed, and starts again on the same folder with new
// handlers. The cluster at its address can be another one.
type process struct {
	dir   string
	front *switchableAddress
	// currentCluster is the cluster that the address of the process leads to.
	currentCluster *cluster
	// running is nil while no process runs.
	running *runningChild
	// swapped means that the cluster was swapped since the start of the process. The process can miss
	// the swap, because a watch does not reveal it.
	swapped bool
	// latestVersions has the latest version of each object in the caches.
	latestVersions map[string]map[types.UID]uint64
	counts         lifeCounts
}

// lifeCounts counts events in the lives of processes.
type lifeCounts struct {
	begun, ended, killed int
	// swapsAway counts swaps while no process ran. behind counts swaps to a cluster with lower resource
	// versions.
	swaps, swapsAway, behind int
	// resumed counts the informers that continued from the saved state of an earlier process.
	resumed, events int
	// latest has these counters of the running process.
	latest struct{ resumed, events int }
}

func (t lifeCounts) String() string {
	return fmt.Sprintf("%d processes, of which %d ended and %d were killed, in which %d informers resumed and %d events were delivered; %d swaps of the server, %d of them while there was no process, %d to lower resource versions",
		t.begun, t.ended, t.killed, t.resumed+t.latest.resumed, t.events+
			t.latest.events, t.swaps, t.swapsAway, t.behind)
}

type runningChild struct {
	*rpc.Client
	command *exec.Cmd
	stdin   io.Closer
}

func newProcess(w *fixture) *process {
	w.Helper()
	p := &process{dir: w.TempDir(), front: newSwitchableAddress(w, w.cluster, w.other),
		currentCluster: w.cluster}
	w.Cleanup(func() {
		if c := p.running; c != nil { // the test has failed
			_ = c.command.Process.Kill()
			_ = c.command.Wait()
			_ = c.Close()
		}
	})
	return p
}

// startProcess starts a process unless one runs.
func (w *fixture) startProcess(p *process) {
	w.Helper()
	if p.running != nil {
		return
	}
	p.counts.begun++
	p.latestVersions = map[string]map[types.UID]uint64{}
	options := childOptions{
		Name: "process " + strconv.Itoa(p.counts.begun), Host: p.front.URL, Authority: p.front.CA,
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
	c.command.Env = append(os.Environ(), childEnv+"="+string(text), "GORACE=halt_on_error=1")
	c.command.Stderr = os.Stderr
	stdin, err := c.command.StdinPipe() // the process ends when stdin is closed
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
	w.inspect(p, false) // waits until the process has started
}

// endProcess stops or kills the process if one runs.
func (w *fixture) endProcess(p *process, killed bool) {
	w.Helper()
	if p.running == nil {
		return
	}
	w.inspect(p, false)
	c := p.running
	if killed {
		p.counts.killed++
		if err := c.command.Process.Kill(); err != nil {
			w.Error(err)
		}
	} else {
		p.counts.ended++
		w.call("UnblockAll", struct{}{}, &struct{}{})
		w.inspect(p, false)
		w.call("End", struct{}{}, &struct{}{})
	}
	_ = c.Close() // ends the process
	if err := c.command.Wait(); err != nil && !killed {
		w.Errorf("the process: %v", err)
	}
	p.running, p.swapped = nil, false
	p.counts.resumed += p.counts.latest.resumed
	p.counts.events += p.counts.latest.events
	p.counts.latest.resumed, p.counts.latest.events = 0, 0
}

// toggleHandler blocks or unblocks a handler of a process.
func (w *fixture) toggleHandler(p *process, number int) {
	w.Helper()
	if p.running != nil {
		w.call("Toggle", number, &struct{}{})
	}
}

func (w *fixture) call(method string, argument, answer any) {
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

// inspect requests the report of a process. It fails the test for inconsistent events, for objects that were
// never written, and if a cache shows an object older than before, even if the cache is not yet confirmed.
func (w *fixture) inspect(p *process, whole bool) *Report {
	w.Helper()
	report := &Report{}
	if p.running == nil {
		return report
	}
	w.call("Inspect", whole, report)
	p.counts.latest.resumed, p.counts.latest.events = 0, 0
	for _, i := range report.Informers {
		if i.Resumed {
			p.counts.latest.resumed++
		}
		p.counts.latest.events += i.Events
		if p.swapped { // its objects come from two clusters
			continue
		}
		if p.latestVersions[i.Name] == nil {
			p.latestVersions[i.Name] = map[types.UID]uint64{}
		}
		w.checkVersions(i, p.latestVersions[i.Name])
	}
	if p.swapped {
		report.Violations = nil
	}
	for _, line := range report.Violations {
		w.Error(line)
	}
	return report
}

func (w *fixture) checkVersions(i InformerReport, shown map[types.UID]uint64) {
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
			o := w.kinds[i.Type].byUID[uid]
			if o == nil {
				o = w.other.kinds[i.Type].byUID[uid]
			}
			if o == nil || value > o.value {
				w.Errorf("%s received the value %d of %s, which was never written: %+v",
					i.Name, value, uid, o)
			}
		}
	}
}

// swap puts the other cluster at the address of the process. A process is swapped at most once, because it
// can detect a swap only while it reaches the other cluster.
func (w *fixture) swap(p *process) {
	w.Helper()
	if p.swapped {
		w.endProcess(p, true)
	}
	w.inspect(p, false)
	next := w.other
	if p.currentCluster == next {
		next = w.cluster
	}
	p.counts.swaps++
	if p.running == nil {
		p.counts.swapsAway++
	}
	if next.currentVersion() < p.currentCluster.currentVersion() {
		p.counts.behind++
	}
	p.front.swap(next)
	p.currentCluster, p.swapped = next, p.running != nil
}

// scheduleRestarts stops, kills and starts a process, and swaps its server, at random steps of a round.
func (w *fixture) scheduleRestarts(r *rand.Rand, schedule func(from, steps int, action func()) int) {
	w.Helper()
	for range 3 {
		killed := r.IntN(3) > 0
		ended := schedule(0, stepsPerRound*3/4, func() { w.endProcess(w.process, killed) })
		schedule(ended, stepsPerRound/4, func() { w.startProcess(w.process) })
	}
	for range r.IntN(4) {
		overtakes := r.IntN(3) == 0
		schedule(0, stepsPerRound, func() {
			if overtakes {
				w.advanceVersion()
			}
			w.swap(w.process)
		})
	}
}

// awaitProcessAgreement waits until the process agrees with the server, unless it is on the other cluster.
func (w *fixture) awaitProcessAgreement(p *process) {
	w.Helper()
	if p.swapped {
		w.endProcess(p, true)
	}
	w.startProcess(p)
	w.call("UnblockAll", struct{}{}, &struct{}{})
	harness.Eventually(w, func(ctx context.Context) error {
		for _, i := range w.inspect(p, true).Informers {
			if err := p.currentCluster.checkAgreement(ctx, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkAgreement compares the objects and events of a process's informer with the cluster's list, and the
// list with the written objects.
func (c *cluster) checkAgreement(ctx context.Context, i InformerReport) error {
	if i.Problem != "" {
		return fmt.Errorf("%s: %s", i.Name, i.Problem)
	}
	k := c.kinds[i.Type]
	list, err := c.listAndCompare(ctx, k)
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
	for n, objects := range i.Delivered {
		if diff := cmp.Diff(k.expected(), emptyIfNil(objects)); diff != "" {
			return fmt.Errorf("handler %d of %s (-written +received):\n%s", n, i.Name, diff)
		}
	}
	if !i.Tracked {
		return nil
	}
	return c.checkIncarnation(ctx, k, i.Name, i.UID)
}

// emptyIfNil restores an empty map, which encoding turns into nil.
func emptyIfNil(m map[string]harness.WitnessedObject) map[string]harness.WitnessedObject {
	if m == nil {
		return map[string]harness.WitnessedObject{}
	}
	return m
}

// currentVersion returns the current resource version of the cluster.
func (c *cluster) currentVersion() uint64 {
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

// advanceVersion raises the resource versions of the cluster with the lower ones above the other's.
func (w *fixture) advanceVersion() {
	w.Helper()
	behind, ahead := w.cluster, w.other
	if behind.currentVersion() > ahead.currentVersion() {
		behind, ahead = ahead, behind
	}
	for n := ahead.currentVersion() - behind.currentVersion(); n > 0; n-- {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"n":%q}}}`, strconv.FormatUint(n, 10))
		if _, err := behind.admin.Resource(namespacesResource).Patch(w.ctx, w.namespaces[0],
			types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

var namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
