package zstd_test

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/storage/zstd"
)

// Keep large objects that are seldom read compressed, and all others as usual.
func Example() {
	large := dynamicinformer.ResourceOptions{
		Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageCompressed,
			Compression: zstd.New(zstd.Options{})},
	}
	fmt.Println(large.Storage.Mode)

	// Output: compressed
}

// What a Trainer does for a type of objects.
func ExampleTrainer_Train() {
	object := func(n int) []byte {
		return fmt.Appendf(nil, `{"kind":"Report","metadata":{"name":"report-%d"},"spec":{"text":%q}}`, n,
			strings.Repeat("all is well ", 20))
	}
	var samples [][]byte
	for n := range 200 {
		samples = append(samples, object(n))
	}
	compressor, err := zstd.New(zstd.Options{}).Train(samples)
	if err != nil {
		fmt.Println(err)
		return
	}

	small := compressor.Compress(nil, object(1000))
	back, err := compressor.Decompress(nil, small)
	fmt.Println(len(small) < len(object(1000))/5, string(back) == string(object(1000)), err)

	// Output: true true <nil>
}
