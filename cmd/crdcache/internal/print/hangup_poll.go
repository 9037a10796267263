//go:build linux || darwin

package print

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// NotifyHangup returns a channel that is closed when the reader of a pipe closes the pipe. It stops watching
// when quit is closed.
func NotifyHangup(file *os.File, quit <-chan struct{}) <-chan struct{} {
	hungUp := make(chan struct{})
	fd, err := fileDescriptor(file)
	if err != nil {
		return hungUp
	}
	wakeReader, wakeWriter, err := os.Pipe()
	if err != nil {
		return hungUp
	}
	go func() { // ended by quit; interrupts the poll
		<-quit
		wakeWriter.Close()
	}()
	go func() {
		defer wakeReader.Close()
		wakeFD, err := fileDescriptor(wakeReader)
		if err == nil && awaitHangup(fd, wakeFD) {
			close(hungUp)
		}
	}()
	return hungUp
}

func fileDescriptor(file *os.File) (fd int32, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	return fd, raw.Control(func(n uintptr) { fd = int32(n) })
}

// pollReadBand is POLLRDBAND. The event never occurs on pipes, but some systems do not poll without an event.
const pollReadBand = 0x80

// awaitHangup waits until fd hangs up and returns true, or until wakeFD does and returns false.
func awaitHangup(fd, wakeFD int32) bool {
	for {
		pollFDs := []unix.PollFd{{Fd: fd, Events: pollReadBand}, {Fd: wakeFD, Events: unix.POLLIN}}
		_, err := unix.Poll(pollFDs, -1)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil, pollFDs[0].Revents&unix.POLLNVAL != 0, pollFDs[1].Revents != 0:
			return false
		case pollFDs[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
			return true
		}
	}
}
