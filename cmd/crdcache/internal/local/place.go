package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Place is where the server of an identity listens.
type Place struct {
	// Folder belongs to the user alone, and has nothing but the server's files.
	Folder string
	name   string // of the socket
}

// PlaceOf returns the place of an identity. Nothing is made.
func PlaceOf(identity string) Place {
	base := os.Getenv("XDG_RUNTIME_DIR")
	if filepath.IsAbs(base) { // the specification has relative ones be ignored
		base = filepath.Join(base, "crdcache")
	} else {
		base = filepath.Join(os.TempDir(), "crdcache-"+strconv.Itoa(os.Getuid()))
	}
	return Place{Folder: filepath.Join(base, identity), name: "socket"}
}

// placeAt returns the place with a socket.
func placeAt(socket string) Place {
	return Place{Folder: filepath.Dir(socket), name: filepath.Base(socket)}
}

// Socket is the path of the socket.
func (p Place) Socket() string { return filepath.Join(p.Folder, p.name) }

// maxPath is how long the path of a socket may be on every system.
const maxPath = 103

// make makes the folder, and its parent, for the user alone.
func (p Place) make() error {
	if len(p.Socket()) > maxPath {
		return fmt.Errorf("%s is too long for the path of a socket: set XDG_RUNTIME_DIR to a shorter one", p.Socket())
	}
	for _, folder := range []string{filepath.Dir(p.Folder), p.Folder} {
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := private(folder, fs.ModeDir); err != nil {
			return err
		}
	}
	return nil
}

// check reports what keeps the place from being trusted: whoever could write there could answer for the server.
func (p Place) check() error {
	for _, folder := range []string{filepath.Dir(p.Folder), p.Folder} {
		if err := private(folder, fs.ModeDir); err != nil {
			return err
		}
	}
	return private(p.Socket(), fs.ModeSocket)
}

// private fails unless a file is of a kind, and the user's alone.
func private(path string, kind fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch {
	case info.Mode().Type() != kind:
		return fmt.Errorf("%s is not what a server leaves there: remove it", path)
	case !owned(info):
		return fmt.Errorf("%s belongs to somebody else, and is not used", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others (%v), and is not used: it should be %v", path, info.Mode().Perm(), info.Mode().Perm()&0o700)
	}
	return nil
}
