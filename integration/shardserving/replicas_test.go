package shardserving_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/crdcache/crdcache/integration/crdcached/running"
)

const (
	servedName = "crdcached.crdcached.svc"
	peerName   = "crdcached-peer"
)

// replicas are crdcacheds that share the objects.
type replicas struct {
	*testing.T
	key, kubeconfig, folder string
	doors                   []*door
	servers                 []*running.Server
}

// startReplicas starts n of them, which are stopped when the test ends.
func startReplicas(t *testing.T, key string, n int) *replicas {
	t.Helper()
	r := &replicas{T: t, key: key, kubeconfig: running.Kubeconfig(t), folder: certificates(t), servers: make([]*running.Server, n)}
	for range n {
		r.doors = append(r.doors, newDoor(t))
	}
	for ordinal := range n {
		r.start(ordinal)
	}
	return r
}

// start starts a replica, and lets the others through to it.
func (r *replicas) start(ordinal int) {
	r.Helper()
	r.servers[ordinal] = r.run(ordinal, len(r.doors))
	r.doors[ordinal].lead(strings.TrimPrefix(r.servers[ordinal].URL, "https://"))
}

// run runs a replica that believes in a number of replicas.
func (r *replicas) run(ordinal, believed int) *running.Server {
	r.Helper()
	var peers []string
	for i := range believed {
		peers = append(peers, "https://"+r.doors[i%len(r.doors)].listener.Addr().String())
	}
	config := fmt.Sprintf("types: ['*.demo.crdcache.dev', configmaps]\nsharding: {key: %s, replicas: %d, ordinal: %d, peers: ['%s'], serverName: %s, caFile: %s, certFile: %s, keyFile: %s}\n",
		r.key, believed, ordinal, strings.Join(peers, "', '"), servedName, r.file("ca.crt"), r.file("peer.crt"), r.file("peer.key"))
	return running.StartIn(r.T, r.kubeconfig, config, "--tls-cert-file", r.file("tls.crt"), "--tls-private-key-file", r.file("tls.key"))
}

func (r *replicas) file(name string) string { return filepath.Join(r.folder, name) }

// door is where others find a replica, whether it runs or not.
type door struct {
	listener net.Listener

	mu struct {
		sync.Mutex
		to    string // nobody, if empty
		conns map[net.Conn]bool
	}
}

func newDoor(t *testing.T) *door {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{listener: listener}
	d.mu.conns = map[net.Conn]bool{}
	var group sync.WaitGroup
	group.Go(func() { // ended by the cleanup
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { d.pass(c) }) // ended by either side, or by lead
		}
	})
	t.Cleanup(func() {
		listener.Close()
		d.lead("")
		group.Wait()
	})
	return d
}

// lead has the door lead elsewhere, or nowhere. Who is on the way is turned back.
func (d *door) lead(to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.to = to
	for c := range d.mu.conns {
		c.Close()
	}
}

// hold remembers a connection; false where it may not go on.
func (d *door) hold(c net.Conn, to string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.conns[c] = true
	return d.mu.to == to && to != ""
}

func (d *door) pass(c net.Conn) {
	d.mu.Lock()
	to := d.mu.to
	d.mu.Unlock()
	defer func() {
		c.Close()
		d.mu.Lock()
		delete(d.mu.conns, c)
		d.mu.Unlock()
	}()
	if !d.hold(c, to) {
		return
	}
	other, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(other, c); other.Close() }() // ended by closing either
	_, _ = io.Copy(c, other)                                                   // the end is all that counts
	c.Close()
	<-done
}

// certificates makes the files of an authority that signs for the replicas.
func certificates(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	key := newKey(t)
	ca, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "crdcached"}, key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, filepath.Join(folder, "ca.crt"), ca.Raw)
	for name, template := range map[string]*x509.Certificate{
		"tls":      {DNSNames: []string{servedName}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
		"peer":     {Subject: pkix.Name{CommonName: peerName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
		"stranger": {Subject: pkix.Name{CommonName: "stranger"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	} {
		template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), ca.NotBefore, ca.NotAfter
		own := newKey(t)
		signed, err := x509.CreateCertificate(rand.Reader, template, ca, own.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		writePEM(t, filepath.Join(folder, name+".crt"), signed)
		text, err := keyutil.MarshalPrivateKeyToPEM(own)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name+".key"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t *testing.T, file string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
