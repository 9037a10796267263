package s2_test

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// Objects that are read stay decompressed, others are compressed.
func Example() {
	options := dynamicinformer.ResourceOptions{
		Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageAdaptive, Compression: s2.New()},
	}
	fmt.Println(options.Storage.Mode)

	// Output: adaptive
}

// A Trainer creates compressors for a type of objects.
func ExampleTrainer_Train() {
	object := func(n int) []byte {
		return fmt.Appendf(nil, `{"kind":"Report","metadata":{"name":"report-%d"},"spec":{"text":%q}}`, n,
			strings.Repeat("all is well ", 20))
	}
	var samples [][]byte
	for n := range 200 {
		samples = append(samples, object(n))
	}
	compressor, err := s2.New().Train(samples)
	if err != nil {
		fmt.Println(err)
		return
	}

	small := compressor.Compress(nil, object(1000))
	back, err := compressor.Decompress(nil, small)
	fmt.Println(len(small) < len(object(1000))/5, string(back) == string(object(1000)), err)

	// Output: true true <nil>
}
