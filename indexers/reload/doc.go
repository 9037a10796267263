// Package reload keeps an index config up to date while a program runs.
//
// # Usage
//
// A [Watcher] loads the files of a config, watches them, and hands each new config to Apply, together with
// what differs:
//
//	watcher, err := reload.New(ctx, reload.Options{
//		Files:  []string{"indexes.yaml"},
//		Apply:  func(_ context.Context, u reload.Update) error { return binding.Apply(u.New) },
//		Report: func(o reload.Outcome) { log.Print(o) },
//	})
//	go watcher.Run(ctx)
//
// # Consistency
//
// A config that has errors, that Check refuses, or that Apply does not take changes nothing: the one before
// stays in force, and the outcome says why. What Check or Apply refused is tried again at longer and longer
// intervals, up to a minute, because their reasons may pass. A file is looked at when it has been quiet for a
// moment, so that one that is being written is not read by halves. What a mount of a ConfigMap does, which
// swaps a symbolic link, is seen as well as files that are written or replaced; and since some file systems
// tell of nothing, the files are also read now and then.
//
// # Concurrency
//
// All methods are safe for concurrent use. Apply and Report are called one at a time and under no lock.
package reload
