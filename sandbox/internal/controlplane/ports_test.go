package controlplane

import (
	"net"
	"strconv"
	"testing"
)

func TestLeasedPortIsTakenUntilReleased(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	lease, err := leasePort(0)
	if err != nil {
		t.Fatal(err)
	}
	if lease.port < firstPort || lease.port > lastPort {
		t.Errorf("port %d is outside %d-%d", lease.port, firstPort, lastPort)
	}
	// The port is reserved although nothing listens on it.
	if again, err := leasePort(lease.port); err == nil {
		t.Errorf("port %d was leased twice", again.port)
	}
	lease.release()
	again, err := leasePort(lease.port)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	again.release()
}

func TestPortInUseIsRefused(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	listener, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	if _, err := leasePort(port); err == nil {
		t.Errorf("port %d was leased although a process listens on it", port)
	}
	// The failed attempt must not keep the reservation.
	listener.Close()
	lease, err := leasePort(port)
	if err != nil {
		t.Fatal(err)
	}
	lease.release()
}

func TestManyLeasesDiffer(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	seen := map[string]bool{}
	for range 50 {
		lease, err := leasePort(0)
		if err != nil {
			t.Fatal(err)
		}
		defer lease.release()
		seen[strconv.Itoa(lease.port)] = true
	}
	if len(seen) != 50 {
		t.Errorf("50 leases, %d ports", len(seen))
	}
}
