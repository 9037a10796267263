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
		switch isSnapshot := isSnapshot(ctx, path, options); {
		case !isSnapshot:
		case len(options.Paths) > 1:
			return nil, fmt.Errorf("%s is a snapshot, which cannot be combined with other files: omit the others", path)
		case path == manifest.Stdin:
			return readSnapshot(options.In)
		default:
			return snapshot.Open(path)
		}
	}
	return nil, nil
}

// isSnapshot reports whether a path is a snapshot. It reads only regular files, because reading consumes a
// pipe, and standard input. The manifest reader reports the errors of paths.
func isSnapshot(ctx context.Context, path string, options *Options) bool {
	if path == manifest.Stdin {
		return options.In != nil && isStdinSnapshot(ctx, options)
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err == nil && info.IsDir() && snapshot.IsFolder(path)
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, len(block.Magic))
	_, err = io.ReadFull(file, head)
	return err == nil && string(head) == block.Magic
}

// isStdinSnapshot makes options.In a reader that has consumed nothing.
func isStdinSnapshot(ctx context.Context, options *Options) bool {
	stream, err := (&manifest.File{Path: manifest.Stdin}).Open(ctx, options.In)
	if err != nil {
		return false
	}
	in := bufio.NewReader(stream)
	options.In = in
	head, err := in.Peek(len(block.Magic))
	return err == nil && string(head) == block.Magic
}

// readSnapshot reads a snapshot from standard input into memory.
func readSnapshot(in io.Reader) (file *snapshot.File, err error) {
	text, err := io.ReadAll(in)
	if err == nil {
		file, err = snapshot.NewFile(bytes.NewReader(text), int64(len(text)))
	}
	if err != nil {
		return nil, fmt.Errorf("read a snapshot from standard input: %w", err)
	}
	return file, nil
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
	if contents.Namespace != "" {
		err := fmt.Errorf("the snapshot contains only the namespace %s", contents.Namespace)
		s.addProblem(&manifest.Problem{File: s.options.Paths[0], Warning: true, Err: err})
	}
}
