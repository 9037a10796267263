package localserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"
)

// SocketDir is the directory and the socket of the server of an identity.
type SocketDir struct {
	// Dir is accessible only to the user and contains only the server's files.
	Dir  string
	name string // of the socket
}

// SocketDirFor returns the directory of an identity without creating it.
func SocketDirFor(identity string) SocketDir {
	base := os.Getenv("XDG_RUNTIME_DIR")
	if filepath.IsAbs(base) { // the XDG specification ignores relative paths
		base = filepath.Join(base, "crdcache")
	} else {
		base = filepath.Join(os.TempDir(), "crdcache-"+strconv.Itoa(os.Getuid()))
	}
	return SocketDir{Dir: filepath.Join(base, identity), name: "socket"}
}

func (p SocketDir) Socket() string { return filepath.Join(p.Dir, p.name) }

// openLock opens the file that a server locks.
func (p SocketDir) openLock() (*os.File, error) {
	return os.OpenFile(filepath.Join(p.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
}

// maxSocketPathLength is the lowest limit of all systems, in bytes.
const maxSocketPathLength = 103

// create creates the directory and its parent, to which only the user has access.
func (p SocketDir) create() error {
	if len(p.Socket()) > maxSocketPathLength {
		return fmt.Errorf("%s is too long for the path of a socket: set XDG_RUNTIME_DIR to a shorter path",
			p.Socket())
	}
	for _, folder := range []string{filepath.Dir(p.Dir), p.Dir} {
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := checkOwnerOnly(folder, fs.ModeDir); err != nil {
			return err
		}
	}
	return nil
}

func (p SocketDir) verify() error {
	return cmp.Or(checkOwnerOnly(filepath.Dir(p.Dir), fs.ModeDir), checkOwnerOnly(p.Dir, fs.ModeDir),
		checkOwnerOnly(p.Socket(), fs.ModeSocket))
}

// checkOwnerOnly returns an error unless a file has the type, belongs to the user, and is inaccessible to
// others.
func checkOwnerOnly(path string, fileType fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch {
	case info.Mode().Type() != fileType:
		return fmt.Errorf("%s has an unexpected file type: remove it", path)
	case !isOwnedByUser(info):
		return fmt.Errorf("%s belongs to another user: remove it or set XDG_RUNTIME_DIR", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is accessible to other users (%v): change its mode to %v", path,
			info.Mode().Perm(), info.Mode().Perm()&0o700)
	}
	return nil
}

// Identity returns a hash of the cluster and user of a config. Two configs with one hash get the same
// answers. The hash includes the content of files, except of token files, because tokens are renewed. For an
// exec plugin it includes the account: Identity can run the plugin and call the API server. known is false if
// the API server did not report the account: then a later identity can differ. It is safe for concurrent use.
func Identity(ctx context.Context, config *rest.Config) (identity string, known bool, err error) {
	known = true
	identityInfo := struct {
		Host, APIPath, Username, Password, Token, TokenFile string
		Impersonate                                         rest.ImpersonationConfig
		ServerName                                          string
		Insecure                                            bool
		Files                                               []string
		Exec, AuthProvider                                  any
		Proxy                                               string
	}{
		Host: config.Host, APIPath: config.APIPath, Username: config.Username, Password: config.Password,
		Token: config.BearerToken, TokenFile: config.BearerTokenFile, Impersonate: config.Impersonate,
		ServerName: config.ServerName, Insecure: config.Insecure, AuthProvider: config.AuthProvider,
	}
	if config.BearerTokenFile != "" {
		identityInfo.Token = "" // content of the token file when the config was read
	}
	if config.ExecProvider != nil {
		if identityInfo.Exec, known, err = pluginAccount(ctx, config); err != nil {
			return "", false, err
		}
	}
	if config.Proxy != nil {
		proxy, err := config.Proxy(nil)
		if err == nil && proxy != nil {
			identityInfo.Proxy = proxy.String()
		}
	}
	for _, f := range []struct {
		data []byte
		path string
	}{{config.CAData, config.CAFile}, {config.CertData, config.CertFile}, {config.KeyData, config.KeyFile}} {
		data := f.data
		if len(data) == 0 && f.path != "" {
			if data, err = os.ReadFile(f.path); err != nil {
				return "", false, err
			}
		}
		identityInfo.Files = append(identityInfo.Files, fmt.Sprintf("%x", sha256.Sum256(data)))
	}
	text, err := json.Marshal(identityInfo)
	if err != nil {
		return "", false, err
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:16]), known, nil
}
