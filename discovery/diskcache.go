package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const diskFormat = 1

// diskFile stores one discovery document of one API server on disk. Writers replace the file atomically.
type diskFile struct {
	path string
	// server and document are also stored in the file, because folder names are not unique.
	server, document string
}

type diskRecord struct {
	Format   int             `json:"format"`
	Server   string          `json:"server"`
	Document string          `json:"document"`
	Started  time.Time       `json:"started"`
	Content  *cachedDocument `json:"content"`
}

// newDiskFile returns the file for a document ("/apis") of a server (its URL) below dir.
func newDiskFile(dir, server, document string) diskFile {
	hash := sha256.Sum256([]byte(server))
	folder := cacheFileName(server) + "-" + hex.EncodeToString(hash[:4])
	return diskFile{
		path:   filepath.Join(dir, folder, strings.TrimPrefix(document, "/")+".json"),
		server: server, document: document,
	}
}

// cacheFileName converts a URL to a file name that is valid on all systems.
func cacheFileName(url string) string {
	_, rest, ok := strings.Cut(url, "://")
	if !ok {
		rest = url
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, rest)
	return strings.Trim(name[:min(len(name), 100)], "._")
}

// load returns the content of the file, or nil if it is missing or invalid.
func (f diskFile) load(now time.Time) *snapshot {
	data, err := os.ReadFile(f.path)
	if err != nil {
		return nil
	}
	var r diskRecord
	if err := json.Unmarshal(data, &r); err != nil || !f.accepts(r, now) {
		return nil
	}
	return &snapshot{cachedDocument: r.Content, started: r.Started}
}

// accepts rejects other formats and servers, and times in the future, which would never expire.
func (f diskFile) accepts(r diskRecord, now time.Time) bool {
	return r.Format == diskFormat && r.Server == f.server && r.Document == f.document &&
		r.Content != nil && !r.Started.After(now)
}

// store writes s. It ignores errors, because the cache is optional.
func (f diskFile) store(s snapshot) {
	data, err := json.Marshal(diskRecord{
		Format: diskFormat, Server: f.server, Document: f.document, Started: s.started,
		Content: s.cachedDocument,
	})
	if err != nil {
		return
	}
	folder := filepath.Dir(f.path)
	if os.MkdirAll(folder, 0o750) != nil {
		return
	}
	temp, err := os.CreateTemp(folder, ".writing-*")
	if err != nil {
		return
	}
	_, err = temp.Write(data)
	if closeErr := temp.Close(); err != nil || closeErr != nil || os.Rename(temp.Name(), f.path) != nil {
		os.Remove(temp.Name())
	}
}
