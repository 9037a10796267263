package zstd_test

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/storage/zstd"
)

// Only objects of a type that is rarely read are compressed.
func Example() {
	large := dynamicinformer.ResourceOptions{
		Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageCompressed,
			Compression: zstd.New(zstd.Options{})},
	}
	fmt.Println(large.Storage.Mode)

	// Output: compressed
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
