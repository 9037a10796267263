package experiment

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
)

func TestCheckShare(t *testing.T) {
	none, some := func() int64 { return 0 }, func() int64 { return 750 }
	tests := map[string]struct {
		subject string
		objects int
		dropped func() int64
		ok      bool
	}{
		"all":                                 {OnlyReplica, 1000, nil, true},
		"not all":                             {OnlyReplica, 999, nil, false},
		"a share of the server's":             {ServerReplica, 260, none, true},
		"too much":                            {ServerReplica, 400, none, false},
		"too little":                          {ServerReplica, 100, none, false},
		"a share that the server has not cut": {ServerReplica, 260, some, false},
		"a share of the client's":             {ClientReplica, 240, some, true},
		"a share that the server has cut":     {ClientReplica, 240, none, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := checkShare(Task{Subject: tt.subject, Objects: 1000}, tt.objects,
				tt.dropped); (err == nil) != tt.ok {
				t.Errorf("checkShare() = %v", err)
			}
		})
	}
}

func TestCountingDialer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() { // ends with the connection
		if c, err := listener.Accept(); err == nil {
			_, _ = c.Write(make([]byte, 12_345))
			_ = c.Close()
		}
	}()
	var received atomic.Int64
	c, err := countingDialer(&received)(context.Background(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Fatal(err)
	}
	if received.Load() != 12_345 {
		t.Errorf("counted %d bytes, want 12345", received.Load())
	}
}
