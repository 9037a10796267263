package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Box is a running sandbox in a temporary folder. Its methods are called one at a time.
type Box struct {
	binary, dir, kubeconfig string
	size                    string
	filled                  int

	command *exec.Cmd
	stdin   io.Closer
	stderr  *bytes.Buffer // only to be read after Wait
}

// namespaces is how many the objects are spread over.
const namespaces = 50

// certificates is the definition of what Fill writes.
const certificates = "certificates.cert-manager.io"

// StartSandbox starts a sandbox from its binary and applies the definitions in a folder. It is for objects of one
// size, "small" or "large". It ends with Stop, and with this process, however that ends; nothing is left of it
// then.
func StartSandbox(ctx context.Context, binary, crds, size string) (*Box, error) {
	if info, err := os.Stat(binary); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("there is no sandbox at %s: run 'make sandbox' to build it, or say where it is with -sandbox", binary)
	}
	b := &Box{binary: binary, size: size, stderr: &bytes.Buffer{}}
	b.command = exec.Command(binary, "exec", "--load", crds, "--",
		"sh", "-c", `echo "$SANDBOX_DIR"; echo "$KUBECONFIG"; exec cat >/dev/null`)
	b.command.Stderr = b.stderr
	// Ctrl-C is not for the sandbox: it ends when its standard input does.
	b.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := b.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	b.stdin = stdin
	stdout, err := b.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.command.Start(); err != nil {
		return nil, err
	}
	interrupt := context.AfterFunc(ctx, func() { _ = b.command.Process.Signal(syscall.SIGTERM) })
	lines := bufio.NewScanner(stdout)
	for _, value := range []*string{&b.dir, &b.kubeconfig} {
		if lines.Scan() {
			*value = strings.TrimSpace(lines.Text())
		}
	}
	if !interrupt() || b.kubeconfig == "" {
		_ = b.Stop()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s exec ended before the server was ready: %s", binary, strings.TrimSpace(b.stderr.String()))
	}
	return b, nil
}

// Kubeconfig is the path of a file with the address and the administrator.
func (b *Box) Kubeconfig() string { return b.kubeconfig }

// Fill adds Certificates until there are as many as count. There can't be fewer again.
func (b *Box) Fill(ctx context.Context, count int) error {
	if count < b.filled {
		return fmt.Errorf("the sandbox has %d objects already, and %d are wanted", b.filled, count)
	}
	if count == b.filled {
		return nil
	}
	command := exec.CommandContext(ctx, b.binary, "fill", "--dir", b.dir, "--type", certificates,
		"--count", strconv.Itoa(count), "--namespaces", strconv.Itoa(namespaces), "--size", b.size)
	if out, err := command.CombinedOutput(); err != nil {
		return errors.Join(context.Cause(ctx), fmt.Errorf("filling the sandbox: %w: %s", err, bytes.TrimSpace(out)))
	}
	b.filled = count
	return nil
}

// Stop ends the sandbox and waits until it has gone.
func (b *Box) Stop() error {
	if err := errors.Join(b.stdin.Close(), b.command.Wait()); err != nil {
		return fmt.Errorf("stopping the sandbox: %w: %s", err, strings.TrimSpace(b.stderr.String()))
	}
	return nil
}
