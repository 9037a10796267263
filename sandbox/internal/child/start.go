package child

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner runs every process start on one goroutine that is locked to one OS
// thread and never ends. Linux delivers a parent-death signal when the thread
// that forked exits, and the Go runtime ends threads as it sees fit, so a start
// on an ordinary goroutine could kill the child at random.
var spawner = sync.OnceValue(func() chan<- func() {
	requests := make(chan func())
	go func() { // lives as long as the process, by design
		runtime.LockOSThread()
		for request := range requests {
			request()
		}
	}()
	return requests
})

// Start starts cmd so that it receives the signal of onParentDeath when this
// process dies; systems other than Linux ignore it. It is safe for concurrent
// use.
func Start(cmd *exec.Cmd, onParentDeath Signal) error {
	tieToParent(cmd, onParentDeath)
	result := make(chan error)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}
