package controlplane

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/crdcache/crdcache/sandbox/internal/child"
)

// binary returns the path of a component's own program, or "" where it is part of this one.
func (c Config) binary(name string) (string, error) {
	if c.Binaries == "" {
		return "", nil
	}
	path, err := filepath.Abs(filepath.Join(c.Binaries, name))
	if err != nil {
		return "", err
	}
	if _, err := exec.LookPath(path); err != nil {
		return "", fmt.Errorf("the folder of binaries needs an etcd and a kube-apiserver: %w", err)
	}
	return path, nil
}

// command returns what runs the component, and which signal it gets when its parent dies.
func (p *process) command() (*exec.Cmd, child.Signal, error) {
	if p.binary != "" {
		return exec.Command(p.binary, asFlags(p.args)...), syscall.SIGKILL, nil
	}
	executable, err := child.Self()
	if err != nil {
		return nil, 0, err
	}
	self := Child{Component: p.component, RemoveDir: p.removeDir, Args: p.args}
	cmd := exec.Command(executable, self.arguments()...)
	cmd.Args[0] = os.Args[0] // what process lists show
	if p.removeDir != "" {
		// The one that cleans up behind a dead parent must live to do so; it
		// relies on its standard input alone.
		return cmd, 0, nil
	}
	return cmd, syscall.SIGKILL, nil
}
