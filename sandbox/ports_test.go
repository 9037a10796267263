package main

import (
	"net"
	"testing"
)

func TestLeasedPortIsTakenUntilReleased(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	lease, err := leasePort()
	if err != nil {
		t.Fatal(err)
	}
	if lease.port < firstPort || lease.port > lastPort {
		t.Errorf("port %d is outside %d-%d", lease.port, firstPort, lastPort)
	}
	lease.release()
	if lease, err = tryPort(dir, lease.port); err != nil {
		t.Fatal(err)
	}
	defer lease.release()
	// The port is reserved although nothing listens on it.
	if _, err := tryPort(dir, lease.port); err == nil {
		t.Errorf("port %d was leased twice", lease.port)
	}
}

func TestPortInUseIsRefused(t *testing.T) {
	dir := t.TempDir()
	listener, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	if _, err := tryPort(dir, port); err == nil {
		t.Errorf("port %d was leased although a process listens on it", port)
	}
	// The failed attempt must not keep the reservation.
	listener.Close()
	lease, err := tryPort(dir, port)
	if err != nil {
		t.Fatal(err)
	}
	lease.release()
}
