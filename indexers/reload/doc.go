// Package reload reloads an index config when its files change.
//
// # Usage
//
// A [Watcher] loads the files of a config, watches them, and passes each new config to Apply:
//
//	watcher, err := reload.New(reload.Options{
//		Files:  []string{"indexes.yaml"},
//		Apply:  func(_ context.Context, c *indexers.Config) error { return binding.Apply(c) },
//		Report: func(o reload.Outcome) { log.Print(o) },
//	})
//	go watcher.Run(ctx)
//
// # Consistency
//
// If a config has errors, or Apply returns one, the previous config stays in effect and the outcome has the
// error. Apply is retried at increasing intervals, up to a minute, because its errors can be temporary. The
// watcher reads the files each second, because some file systems send no events, and waits until two reads
// agree, so that no file is read while it is being written.
//
// # Concurrency
//
// All methods are safe for concurrent use. Apply and Report are called one at a time without locks.
package reload
