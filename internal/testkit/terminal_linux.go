package testkit

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Terminal is a terminal without input. It records output unchanged, including line breaks.
type Terminal struct {
	// File is the program's side.
	File *os.File

	master *os.File
	ended  chan struct{} // closed when all output has been read

	mu struct {
		sync.Mutex
		output  strings.Builder
		arrived chan struct{} // closed and replaced with every output
	}
}

// OpenTerminal opens a terminal with this number of columns. The caller must close it.
func OpenTerminal(columns int) (*Terminal, error) {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	t := &Terminal{master: os.NewFile(uintptr(master), "/dev/ptmx"), ended: make(chan struct{})}
	t.mu.arrived = make(chan struct{})
	if err := t.open(master); err != nil {
		_ = t.master.Close()
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	go t.read() // ended by Close, when there is no writer
	if err := t.Resize(columns); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// open opens the program's side, without conversion of line breaks.
func (t *Terminal) open(master int) error {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	number, err := unix.IoctlGetUint32(master, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	name := fmt.Sprint("/dev/pts/", number)
	file, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	t.File = os.NewFile(uintptr(file), name)
	settings, err := unix.IoctlGetTermios(file, unix.TCGETS)
	if err != nil {
		return err
	}
	settings.Oflag &^= unix.OPOST
	settings.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(file, unix.TCSETS, settings)
}

// Resize changes the number of columns.
func (t *Terminal) Resize(columns int) error {
	size := &unix.Winsize{Row: 24, Col: uint16(columns)}
	if err := unix.IoctlSetWinsize(int(t.master.Fd()), unix.TIOCSWINSZ, size); err != nil {
		return fmt.Errorf("resizing a terminal: %w", err)
	}
	return nil
}

// Output returns the output so far.
func (t *Terminal) Output() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.output.String()
}

// Await waits until enough accepts the output, or returns the error of ctx.
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

// Close closes the terminal and returns all output. Programs that write to it must have ended.
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
		if err != nil { // EIO after the other side was closed
			return
		}
	}
}
