package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Ports are below all common ephemeral ranges. While a component is down, an outgoing connection could take a
// port in such a range, and a client that retries it on loopback could even connect to itself.
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

// leasePort reserves the preferred port, or any free one if preferred is 0.
func leasePort(preferred int) (*portLease, error) {
	dir, err := leaseDir()
	if err != nil {
		return nil, err
	}
	if preferred != 0 {
		lease, err := tryPort(dir, preferred)
		if err != nil {
			return nil, fmt.Errorf("port %d is taken: %w", preferred, err)
		}
		return lease, nil
	}
	const attempts = 200
	var lastErr error
	for range attempts {
		lease, err := tryPort(dir, firstPort+rand.IntN(lastPort-firstPort+1))
		if err == nil {
			return lease, nil
		}
		lastErr = err
	}
	return nil, fmt.Errorf("no free port between %d and %d after %d attempts: %w", firstPort, lastPort,
		attempts, lastErr)
}

func tryPort(dir string, port int) (*portLease, error) {
	lock, err := lockFile(filepath.Join(dir, strconv.Itoa(port)))
	if errors.Is(err, errLocked) {
		return nil, errors.New("reserved by another sandbox")
	}
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

func leaseDir() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("crdcache-sandbox-ports-%d", os.Getuid()))
	return dir, os.MkdirAll(dir, 0o700)
}
