package filesource

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/crdcache/crdcache/internal/block"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/snapshot"
)

// openOnlySnapshot opens the snapshot among the paths, or returns nil. A snapshot must be the only path,
// because its discovery and tables do not apply to other files.
func openOnlySnapshot(ctx context.Context, options *Options) (*snapshot.File, error) {
	for _, path := range options.Paths {
		open, err := snapshotOpener(ctx, path, options)
		if err != nil || open == nil {
			continue // the manifest reader reports the error
		}
		if len(options.Paths) > 1 {
			return nil, fmt.Errorf("%s is a snapshot, which cannot be combined with other files: omit the others", path)
		}
		return open()
	}
	return nil, nil
}

// snapshotOpener returns a function that opens a snapshot, or nil for other files. It reads only regular
// files, because reading consumes a pipe.
func snapshotOpener(ctx context.Context, path string, options *Options) (open func() (*snapshot.File, error),
	err error) {
	if path == manifest.Stdin {
		return stdinSnapshotOpener(ctx, options)
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() && snapshot.IsFolder(path) {
		return func() (*snapshot.File, error) { return snapshot.Open(path) }, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, len(block.Magic))
	if _, err = io.ReadFull(file, head); err != nil || string(head) != block.Magic {
		return nil, err
	}
	return func() (*snapshot.File, error) { return snapshot.Open(path) }, nil
}

// stdinSnapshotOpener is snapshotOpener for standard input. The returned function reads it into memory.
func stdinSnapshotOpener(ctx context.Context, options *Options) (open func() (*snapshot.File, error),
	err error) {
	if options.In == nil {
		return nil, nil
	}
	stream, err := (&manifest.File{Path: manifest.Stdin}).Open(ctx, options.In)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(stream)
	options.In = in
	if head, err := in.Peek(len(block.Magic)); err != nil || string(head) != block.Magic {
		return nil, nil // the manifest reader reports the error
	}
	return func() (*snapshot.File, error) {
		text, err := io.ReadAll(in)
		var file *snapshot.File
		if err == nil {
			file, err = snapshot.NewFile(bytes.NewReader(text), int64(len(text)))
		}
		if err != nil {
			return nil, fmt.Errorf("read a snapshot from standard input: %w", err)
		}
		return file, nil
	}, nil
}

// serveSnapshot serves a snapshot. It warns if the snapshot has only one namespace.
func (s *Source) serveSnapshot(file *snapshot.File) {
	backend := newSnapshotBackend(file, s)
	s.snapshot, s.backend, s.handler = file, backend, newSnapshotHandler(backend)
	contents := file.Contents()
	for i, err := range slices.Concat(contents.Damage, contents.Notes) {
		isWarning := i >= len(contents.Damage)
		s.addProblem(&manifest.Problem{File: s.options.Paths[0], Warning: isWarning, Err: err})
	}
	if namespace := contents.Namespace; namespace != "" {
		s.addProblem(&manifest.Problem{File: s.options.Paths[0], Warning: true,
			Err: fmt.Errorf("the snapshot contains only the namespace %s", namespace)})
	}
}
