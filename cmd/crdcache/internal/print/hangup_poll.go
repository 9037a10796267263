//go:build linux || darwin

package print

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pollReadBand is POLLRDBAND. The event never occurs on pipes, but some systems do not poll without an event.
const pollReadBand = 0x80

// awaitHangup waits until the reader of a pipe closes the pipe, for a time at most, and reports whether it
// did. ok is false if that cannot be known.
func awaitHangup(file *os.File, atMost time.Duration) (hungUp, ok bool) {
	raw, err := file.SyscallConn()
	if err != nil {
		return false, false
	}
	poll := []unix.PollFd{{Events: pollReadBand}}
	closed := raw.Control(func(fd uintptr) {
		poll[0].Fd = int32(fd)
		_, err = unix.Poll(poll, int(atMost.Milliseconds()))
	})
	ok = closed == nil && poll[0].Revents&unix.POLLNVAL == 0 && (err == nil || errors.Is(err, unix.EINTR))
	return poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0, ok
}
