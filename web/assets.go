package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets
var embedded embed.FS

// assets has the files of the page by path.
var assets = readAssets()

type asset struct {
	content     []byte
	contentType string
	etag        string
}

type assetHandler map[string]asset

func readAssets() assetHandler {
	files := assetHandler{}
	root, err := fs.Sub(embedded, "assets")
	if err == nil {
		err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			content = withoutComments(content)
			if path.Ext(name) == ".css" {
				content = []byte(withoutSpaces.Replace(string(content)))
			}
			hash := sha256.Sum256(content)
			files["/"+name] = asset{content, contentTypeOf(name), `"` + hex.EncodeToString(hash[:12]) + `"`}
			return nil
		})
	}
	if err != nil {
		panic(err) // the files are embedded
	}
	files["/"] = files["/index.html"]
	return files
}

// withoutComments removes the indentation, and the lines that are only comments. No file has a text of
// several lines.
func withoutComments(text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		line = bytes.TrimLeft(line, " ")
		isComment := bytes.HasPrefix(line, []byte("//")) || bytes.HasPrefix(line, []byte("/*")) ||
			bytes.HasPrefix(line, []byte("* ")) || bytes.HasPrefix(line, []byte("*/"))
		if isComment && !bytes.HasPrefix(line, []byte("* {")) || len(line) <= 1 {
			out = append(out, '\n') // errors keep their line numbers
			continue
		}
		out = append(out, line...)
	}
	return out
}

// withoutSpaces shortens a style. Its texts do not have these combinations.
var withoutSpaces = strings.NewReplacer(": ", ":", "; ", ";", " {", "{", "{ ", "{", " }", "}", ", ", ",")

// contentTypeOf returns the MIME type of a file. It does not read the machine's MIME tables, which vary.
func contentTypeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.FormatMediaType("application/octet-stream", nil)
}

func (a assetHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file, ok := a[r.URL.Path]
	if !ok {
		writeError(w, http.StatusNotFound, errNoPage)
		return
	}
	w.Header().Set("Content-Type", file.contentType)
	w.Header().Set("Cache-Control", "no-cache") // revalidate with the ETag
	w.Header().Set("ETag", file.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.content))
}

var errNoPage = notFound("page not found")
