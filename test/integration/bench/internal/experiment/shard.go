package experiment

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
)

// Replicas is the number of replicas that share the objects.
const Replicas = 4

// fillReplica fills the cache of one replica. A ServerReplica or ClientReplica is the first of Replicas
// replicas, and caches only its share of the objects. Other subjects cache all objects.
func fillReplica(ctx context.Context, task Task, _ func() error) (Outcome, error) {
	before := statusBytes("VmRSS:")
	config, err := config(task)
	check(err)
	var received atomic.Int64
	config.Dial = countingDialer(&received)
	o := Options{Config: config, GVR: certificates, Kind: certificateKind}
	var dropped func() int64
	f := fillCache(ctx, func() (cache Cache) {
		switch task.Subject {
		case ServerReplica, ClientReplica:
			cache, dropped, err = newReplica(o, Replicas)
		case OnlyReplica:
			cache, err = newSubject(PackedTrimmed, o)
		default:
			cache, err = newSubject(task.Subject, o)
		}
		check(err)
		return cache
	})
	receivedBytes := received.Load()
	check(checkShare(task, f.objects, dropped))
	return Outcome{Metrics: map[string]float64{
		Received:   float64(receivedBytes),
		CPU:        f.cpu.Seconds(),
		LiveHeap:   float64(f.heap),
		PeakRSS:    float64(f.peak),
		PeakGrowth: float64(f.peak - before),
	}}, nil
}

// checkShare checks the number of cached objects. If dropped is nil, the cache must have all objects.
// Otherwise the cache must have about one share. A ClientReplica must have dropped objects; a ServerReplica
// must not.
func checkShare(task Task, objects int, dropped func() int64) error {
	if dropped == nil {
		if objects != task.Objects {
			return fmt.Errorf("the cache has %d objects, want %d", objects, task.Objects)
		}
		return nil
	}
	// The size of a share is binomially distributed. For 1,000 objects, it is outside these bounds with a
	// probability of 2·10^-9.
	if fair := task.Objects / Replicas; objects < fair*2/3 || objects > fair*4/3 {
		return fmt.Errorf("the cache has %d of %d objects, want about a share of %d", objects,
			task.Objects, Replicas)
	}
	if outside := dropped(); (outside == 0) != (task.Subject == ServerReplica) {
		return fmt.Errorf("%s received %d objects outside of its shard: want none if the server filters, some otherwise",
			task.Subject, outside)
	}
	return nil
}

func countingDialer(received *atomic.Int64) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConnection{connection, received}, nil
	}
}

// countedConnection counts received bytes.
type countedConnection struct {
	net.Conn
	received *atomic.Int64
}

func (c *countedConnection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}
