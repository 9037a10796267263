package reload_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/reload"
)

func Example() {
	dir, err := os.MkdirTemp("", "reload")
	must(err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "indexes.yaml")
	_ = os.WriteFile(file, []byte(configWith("color")), 0o600)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	applied := make(chan string)
	watcher, err := reload.New(reload.Options{
		Files: []string{file},
		Apply: func(_ context.Context, config *indexers.Config) error {
			applied <- indexesOf(config)
			return nil
		},
		PollInterval: time.Millisecond,
	})
	must(err)
	go watcher.Run(ctx) // ended by cancel

	_ = os.WriteFile(file+".new", []byte(configWith("color", "size")), 0o600)
	_ = os.Rename(file+".new", file)
	fmt.Println(<-applied)
	// Output: color size
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
