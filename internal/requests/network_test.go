package requests

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// networkFault is a way in which a network or a server fails.
type networkFault string

const (
	works   networkFault = ""
	refuses networkFault = "connections are refused"
	resets  networkFault = "connections are reset"
	closes  networkFault = "connections are closed"
	// loses drops all packets. Existing connections stay dead afterwards.
	loses networkFault = "packets are lost"
	// freezes delays all bytes until the server resumes, like a suspended server.
	freezes networkFault = "the server is suspended"
)

const (
	// dialTimeout and keepAlive are the times after which client-go and Linux give up a connection.
	dialTimeout = 30 * time.Second
	keepAlive   = 165 * time.Second
)

// network connects clients to a server in memory, and can be interrupted.
type network struct {
	accepted chan net.Conn
	closed   chan struct{}

	mu     sync.Mutex
	fault  networkFault
	healed chan struct{} // closed when the fault ends
	links  map[*link]bool
}

func newNetwork() *network {
	n := &network{
		accepted: make(chan net.Conn), closed: make(chan struct{}), healed: make(chan struct{}),
		links: map[*link]bool{},
	}
	close(n.healed)
	return n
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case conn := <-n.accepted:
		return conn, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close also closes all connections.
func (n *network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.closed:
	default:
		close(n.closed)
	}
	for l := range n.links {
		l.kill(io.EOF)
	}
	return nil
}

func (n *network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

func networkError(op string, errno syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(op, errno)}
}

func (n *network) setFault(how networkFault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fault, n.healed = how, make(chan struct{})
	for l := range n.links {
		switch how {
		case refuses, resets:
			l.kill(networkError("read", syscall.ECONNRESET))
		case closes:
			l.kill(io.EOF)
		case loses:
			l.lose()
		}
	}
}

// heal ends the fault.
func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fault = works
	close(n.healed)
}

func (n *network) state() (networkFault, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fault, n.healed
}

// dial connects to the server.
func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	how, healed := n.state()
	switch how {
	case refuses:
		return nil, networkError("connect", syscall.ECONNREFUSED)
	case resets, closes:
		l := n.newLink()
		l.pendingErr = io.EOF
		if how == resets {
			l.pendingErr = networkError("read", syscall.ECONNRESET)
		}
		return l, nil
	case loses:
		timer := time.NewTimer(dialTimeout)
		defer timer.Stop()
		select {
		case <-healed:
		case <-timer.C:
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	l := n.newLink()
	select {
	case n.accepted <- l.server:
		return l, nil
	case <-n.closed:
		l.kill(io.EOF)
		return nil, networkError("connect", syscall.ECONNREFUSED)
	}
}

// link is the client's end of a connection.
type link struct {
	net.Conn
	network    *network
	server     net.Conn
	pendingErr error // error of reads after the first write

	mu     sync.Mutex
	err    error // reason of its end
	ended  chan struct{}
	lost   bool
	expiry *time.Timer
}

func (n *network) newLink() *link {
	client, near := net.Pipe()
	far, server := net.Pipe()
	l := &link{Conn: client, network: n, server: server, ended: make(chan struct{})}
	n.mu.Lock()
	n.links[l] = true
	n.mu.Unlock()
	go l.copyOneWay(near, far) // ended by the end of the link
	go l.copyOneWay(far, near) // ended by the end of the link
	return l
}

// copyOneWay copies data in one direction while the network works.
func (l *link) copyOneWay(from, to net.Conn) {
	chunks := make(chan []byte, 1024) // like buffers of the kernel
	go func() {
		defer close(chunks)
		for {
			chunk := make([]byte, 32<<10)
			n, err := from.Read(chunk)
			if err != nil {
				return
			}
			select {
			case chunks <- chunk[:n]:
			case <-l.ended:
				return
			}
		}
	}()
	defer to.Close()
	defer from.Close()
	for chunk := range chunks {
		if !l.awaitTraffic() {
			return
		}
		if _, err := to.Write(chunk); err != nil {
			return
		}
	}
	l.awaitTraffic() // closing also needs the network
}

// awaitTraffic waits until the network transmits data.
func (l *link) awaitTraffic() bool {
	how, healed := l.network.state()
	l.mu.Lock()
	lost := l.lost
	l.mu.Unlock()
	if lost {
		<-l.ended
		return false
	}
	if how == freezes {
		select {
		case <-healed:
		case <-l.ended:
			return false
		}
	}
	return true
}

// kill ends the connection: the client's reads fail with err.
func (l *link) kill(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = err
	if l.expiry != nil {
		l.expiry.Stop()
	}
	close(l.ended)
	l.Conn.Close()
	l.server.Close()
}

// lose drops all data sent from now on. The connection ends when the kernel gives up.
func (l *link) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.lost = true
		l.expiry = time.AfterFunc(keepAlive, func() { l.kill(networkError("read", syscall.ETIMEDOUT)) })
	}
}

func (l *link) Read(data []byte) (int, error) {
	n, err := l.Conn.Read(data)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.err != nil {
			err = l.err
		}
	}
	return n, err
}

func (l *link) Write(data []byte) (int, error) {
	if l.pendingErr != nil {
		l.kill(l.pendingErr)
		return len(data), nil
	}
	return l.Conn.Write(data)
}

func (l *link) Close() error {
	l.kill(net.ErrClosed)
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	delete(l.network.links, l)
	return nil
}
