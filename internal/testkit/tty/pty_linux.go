package tty

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// Terminal is a terminal on which nobody types. What is written to it arrives as it is, line breaks included.
type Terminal struct {
	// File is the side of the program.
	File *os.File

	master *os.File
	ended  chan struct{} // closed when all that was written has been read

	mu struct {
		sync.Mutex
		output  strings.Builder
		arrived chan struct{} // closed and replaced with every output
	}
}

// Open makes a terminal of so many columns. It has to be closed.
func Open(columns int) (*Terminal, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("making a terminal: %w", err)
	}
	t := &Terminal{master: master, ended: make(chan struct{})}
	t.mu.arrived = make(chan struct{})
	if t.File, err = openOther(master); err != nil {
		_ = master.Close() // nothing was written
		return nil, fmt.Errorf("making a terminal: %w", err)
	}
	go t.read() // ended by Close, which leaves nobody to write
	if err := t.Resize(columns); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// openOther opens the side of the program, and makes it pass on what is written unchanged.
func openOther(master *os.File) (*os.File, error) {
	unlock, number := int32(0), int32(0)
	if err := ioctl(master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock)); err != nil {
		return nil, err
	}
	if err := ioctl(master, syscall.TIOCGPTN, unsafe.Pointer(&number)); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	var mode syscall.Termios
	if err := ioctl(file, syscall.TCGETS, unsafe.Pointer(&mode)); err != nil {
		return nil, err
	}
	mode.Oflag &^= syscall.OPOST
	return file, ioctl(file, syscall.TCSETS, unsafe.Pointer(&mode))
}

// Resize changes the number of columns.
func (t *Terminal) Resize(columns int) error {
	size := [4]uint16{24, uint16(columns)} // rows, columns, and both in pixels
	if err := ioctl(t.master, syscall.TIOCSWINSZ, unsafe.Pointer(&size)); err != nil {
		return fmt.Errorf("resizing a terminal: %w", err)
	}
	return nil
}

// Output is what has been written so far.
func (t *Terminal) Output() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.output.String()
}

// Await waits until what has been written is enough, or returns the error of ctx.
func (t *Terminal) Await(ctx context.Context, enough func(output string) bool) error {
	for {
		t.mu.Lock()
		output, arrived := t.mu.output.String(), t.mu.arrived
		t.mu.Unlock()
		if enough(output) {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return fmt.Errorf("%w; the terminal shows %q", ctx.Err(), output)
		}
	}
}

// Close ends the terminal and returns all that was written. The programs that write to it must have ended.
func (t *Terminal) Close() string {
	_ = t.File.Close()
	<-t.ended
	_ = t.master.Close()
	return t.Output()
}

func (t *Terminal) read() {
	defer close(t.ended)
	buffer := make([]byte, 1<<16)
	for {
		n, err := t.master.Read(buffer)
		t.mu.Lock()
		t.mu.output.Write(buffer[:n])
		close(t.mu.arrived)
		t.mu.arrived = make(chan struct{})
		t.mu.Unlock()
		if err != nil { // EIO, once nobody has the other side open
			return
		}
	}
}

// ioctl takes no descriptor out of the hands of the runtime, as Fd does.
func ioctl(file *os.File, request uintptr, argument unsafe.Pointer) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	if err := raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(argument))
	}); err != nil {
		return err
	}
	if errno != 0 {
		return errno
	}
	return nil
}
