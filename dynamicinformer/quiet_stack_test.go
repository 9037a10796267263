//go:build amd64 && !race

package dynamicinformer

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// smallStack is the number of bytes that the frames of a goroutine can occupy so that its stack shrinks to 8
// KB. The runtime halves a stack of 16 KB if less than a quarter is in use. It adds 800 bytes to the use (see
// shrinkstack in runtime/stack.go) and reserves 32 bytes below the first frame (see newproc1 in
// runtime/proc.go). The compiler inlines differently in other programs, which takes up to 64 bytes more.
const smallStack = 16<<10/4 - 800 - 32 - 64

// showsStacks is set for the child process. It prints the stacks of its goroutines with addresses, which only
// a crash does.
const showsStacks = "CRDCACHE_TEST_SHOW_STACKS"

// TestQuietWatchHasASmallStack verifies that the goroutine of a quiet type, which waits for events of its
// watch over HTTP/2, has a stack of 8 or 16 KB. The stack is most of the cost of a type without objects. The
// size of the frames depends only on the compiler and on the waiting functions.
func TestQuietWatchHasASmallStack(t *testing.T) {
	if os.Getenv(showsStacks) != "" {
		crashWhileQuiet(t)
	}
	program, err := os.Executable()
	must(t, err)
	child := exec.CommandContext(longContext(t), program, "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), showsStacks+"=1", "GOTRACEBACK=system")
	output, _ := child.CombinedOutput() // fails, because the process crashes
	stack := quietWatch(string(output))
	if stack == "" {
		t.Fatalf("no goroutine of a quiet watch in\n%s", output)
	}
	if used := frameBytes(t, stack); used >= smallStack {
		t.Errorf("the frames of a quiet watch take %d bytes, want less than %d, so that the stack has 8 KB. Move one-time work into functions that have returned when the watch is quiet.\n%s", used, smallStack, stack)
	}
}

// crashWhileQuiet ends the process while an informer is quiet.
func crashWhileQuiet(t *testing.T) {
	server := apitest.New(t, apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true})
	front := httptest.NewUnstartedServer(server.Server.Config.Handler)
	front.EnableHTTP2 = true
	front.StartTLS()
	f, err := New(Options{Config: &rest.Config{Host: front.URL, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}),
		}}})
	must(t, err)
	startSynced(t, f)
	text := make([]byte, 1<<20)
	for quietWatch(string(text[:runtime.Stack(text, true)])) == "" {
		time.Sleep(time.Millisecond)
	}
	go panic("to show the stacks") // in another goroutine, because deferred functions would end the watch
	select {}
}

// quietWatch returns the stack of the goroutine that waits for the next event of a watch, or "".
func quietWatch(stacks string) string {
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		if strings.Contains(stack, ".WatchInline(") && strings.Contains(stack,
			".transportResponseBody.Read(") && strings.Contains(stack, "sync.(*Cond).Wait(") {
			return stack
		}
	}
	return ""
}

// addresses matches the addresses at which the frame of a function begins and ends.
var addresses = regexp.MustCompile(` fp=0x([0-9a-f]+) sp=0x([0-9a-f]+) `)

// frameBytes returns the number of bytes that the frames of a goroutine occupy. The innermost comes first.
func frameBytes(t *testing.T, stack string) int64 {
	t.Helper()
	all := addresses.FindAllStringSubmatch(stack, -1)
	if len(all) == 0 {
		t.Fatalf("no frame addresses in\n%s", stack)
	}
	end, err := strconv.ParseInt(all[len(all)-1][1], 16, 64)
	begin, failure := strconv.ParseInt(all[0][2], 16, 64)
	must(t, errors.Join(err, failure))
	return end - begin
}
