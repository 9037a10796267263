package reload_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

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
	watcher, err := reload.New(ctx, reload.Options{
		Files: []string{file},
		Apply: func(_ context.Context, u reload.Update) error {
			for _, c := range u.Changes {
				applied <- fmt.Sprintf("%s: %d new indexes, in place %v", c.Name, len(c.Added), c.InPlace())
			}
			return nil
		},
	})
	must(err)
	go watcher.Run(ctx) // ended by cancel

	_ = os.WriteFile(file+".new", []byte(configWith("color", "size")), 0o600)
	_ = os.Rename(file+".new", file)
	fmt.Println(<-applied)
	// Output: w: 1 new indexes, in place true
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
