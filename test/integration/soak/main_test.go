// Package soak_test follows many types for a long time under faults.
//
// A soak has rounds. In each round, writers change objects. Meanwhile, connections are cut, slow or dead, the
// API server and etcd are killed or frozen, etcd is compacted, and memory is short. Types are deleted and
// installed, handlers block, indexes are replaced, and informers are acquired and released. Then the faults
// end: every cache must agree with the server, the events of each handler must be consistent, and memory,
// goroutines and open files are measured. For comparison, client-go's informers follow some of the types over
// the same connections.
//
// The faults depend on the seed, which is printed. The scheduler decides which requests they hit.
package soak_test

import (
	"flag"
	"runtime"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// options are the sizes of a soak. The defaults suit a short run; make soak uses larger ones.
var options struct {
	duration, round                                            time.Duration
	types, recreated, objects, updates, handlers, stock, limit int
	seed                                                       uint64
	document, heaps                                            string
}

func init() {
	flag.DurationVar(&options.duration, "duration", 40*time.Second, "the time during which new rounds start")
	flag.DurationVar(&options.round, "round", 15*time.Second, "the duration of the faults in a round")
	flag.IntVar(&options.types, "types", 24, "the number of types")
	flag.IntVar(&options.recreated, "coming", 4, "the number of types that are deleted and installed repeatedly")
	flag.IntVar(&options.objects, "objects", 960, "the number of objects of all types")
	flag.IntVar(&options.updates, "updates", 40, "the number of changes per second to objects of all types")
	flag.IntVar(&options.handlers, "handlers", 12, "the number of event handlers of all types")
	flag.IntVar(&options.stock, "stock", 6,
		"the number of permanent types that client-go's informers follow as well")
	flag.IntVar(&options.limit, "longest", 6, "the maximum duration of a fault in seconds")
	flag.Uint64Var(&options.seed, "seed", 0, "the seed of the faults and changes; 0 means a seed from the clock")
	flag.StringVar(&options.heaps, "heaps", "",
		"the folder for a heap profile after each round; empty means no profiles")
	flag.StringVar(&options.document, "document", "", "the document in which the section with the results is replaced; empty means none")
}

func TestMain(m *testing.M) {
	flag.Parse()
	if options.heaps != "" {
		runtime.MemProfileRate = 16 << 10 // a sample for every 16 KiB, to locate growth of a megabyte
	}
	klog.SetLogger(klog.Logger{}) // discards the messages about each fault
	harness.Main(m)
}
