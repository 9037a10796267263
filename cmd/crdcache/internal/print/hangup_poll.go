//go:build linux || darwin

package print

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// NotifyHangup returns a channel that is closed when the reader of a pipe closes it. It watches until then or
// until quit is closed.
func NotifyHangup(file *os.File, quit <-chan struct{}) <-chan struct{} {
	gone := make(chan struct{})
	fd, err := descriptor(file)
	if err != nil {
		return gone
	}
	wakes, wake, err := os.Pipe()
	if err != nil {
		return gone
	}
	go func() { // ended by quit; interrupts the poll
		<-quit
		wake.Close()
	}()
	go func() {
		defer wakes.Close()
		waker, err := descriptor(wakes)
		if err == nil && awaitHangup(fd, waker) {
			close(gone)
		}
	}()
	return gone
}

func descriptor(file *os.File) (fd int32, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	return fd, raw.Control(func(n uintptr) { fd = int32(n) })
}

// pollReadBand is POLLRDBAND, an event that never occurs on these files. Some systems do not poll without an
// event.
const pollReadBand = 0x80

// awaitHangup reports whether the reader of a file closed it before the writer of waker did.
func awaitHangup(fd, waker int32) bool {
	for {
		polled := []unix.PollFd{{Fd: fd, Events: pollReadBand}, {Fd: waker, Events: unix.POLLIN}}
		_, err := unix.Poll(polled, -1)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil, polled[0].Revents&unix.POLLNVAL != 0, polled[1].Revents != 0:
			return false
		case polled[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
			return true
		}
	}
}
