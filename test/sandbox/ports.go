package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Ports are below all common ephemeral ranges. While a component is down, an outgoing connection could take a
// port in such a range. A client that retries this port on loopback could even connect to itself.
const (
	firstPort = 20000
	lastPort  = 29999
)

// A portLease reserves a loopback port among sandboxes, even if nothing listens on it.
type portLease struct {
	port int
	lock *fileLock
}

func (l *portLease) release() { l.lock.release() }

// leasePort reserves a free port.
func leasePort() (*portLease, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("crdcache-sandbox-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	for range 200 {
		var lease *portLease
		if lease, err = tryPort(dir, firstPort+rand.IntN(lastPort-firstPort+1)); err == nil {
			return lease, nil
		}
	}
	return nil, fmt.Errorf("no free port between %d and %d: %w", firstPort, lastPort, err)
}

func tryPort(dir string, port int) (*portLease, error) {
	lock, err := lockFile(filepath.Join(dir, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	// Only binding proves that no other process listens.
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		lock.release()
		return nil, err
	}
	listener.Close()
	return &portLease{port: port, lock: lock}, nil
}
