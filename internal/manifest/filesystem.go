package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// ListFS is List for a file system other than the operating system's. All paths must exist.
func ListFS(ctx context.Context, files fs.FS, paths []string) (l Listing, err error) {
	seen := map[string]bool{}
	var problems []error
	for i, name := range paths {
		name, empty := path.Clean(name), true
		err := fs.WalkDir(files, name, func(at string, entry fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				return err
			case at != name && strings.HasPrefix(entry.Name(), "."):
				if entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			case entry.IsDir():
				l.Dirs = append(l.Dirs, at)
				return nil
			case at != name && !isManifest(at):
				return nil
			}
			if empty = false; !seen[at] {
				seen[at] = true
				l.Files = append(l.Files, &File{Path: at, Argument: i, Named: at == name, files: files})
			}
			return nil
		})
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("list files below %s: %w", name, err))
		case empty:
			l.Empty = append(l.Empty, name)
		}
	}
	return l, errors.Join(problems...)
}
