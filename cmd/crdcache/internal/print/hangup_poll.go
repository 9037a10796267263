//go:build linux || darwin

package print

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Hangup closes the channel that it returns when nobody can read any more what is written to a file, as when
// the reader of a pipe has ended. Its goroutine ends then, or with quit.
func Hangup(file *os.File, quit <-chan struct{}) <-chan struct{} {
	gone := make(chan struct{})
	fd, err := descriptor(file)
	if err != nil {
		return gone
	}
	wakes, wake, err := os.Pipe()
	if err != nil {
		return gone
	}
	go func() { // ended by quit, which breaks the poll off
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

// readBand is POLLRDBAND, which nothing that is written to ever has. Without any event some systems do not
// look.
const readBand = 0x80

// awaitHangup reports whether the reader of a file went away before the writer of waker did.
func awaitHangup(fd, waker int32) bool {
	for {
		polled := []unix.PollFd{{Fd: fd, Events: readBand}, {Fd: waker, Events: unix.POLLIN}}
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
