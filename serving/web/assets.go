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
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed assets
var assetFiles embed.FS

// assets returns the files of the page by path. It reads them at the first call, because most commands serve
// no page.
var assets = sync.OnceValue(readAssets)

type asset struct {
	content     []byte
	contentType string
	etag        string
}

func readAssets() map[string]asset {
	files := map[string]asset{}
	root, err := fs.Sub(assetFiles, "assets")
	if err == nil {
		err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			content = compactSource(content, path.Ext(name))
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

// compactSource removes comments, indentation and spaces around operators, which are a quarter of the files.
// Lines with regular expressions, escapes or nested templates keep their spaces. The files must not have
// literals of several lines.
func compactSource(text []byte, extension string) []byte {
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		line = strings.TrimLeft(line, " ")
		isRule := strings.HasPrefix(line, "* {")
		switch {
		case !isRule && slices.ContainsFunc([]string{"//", "/*", "* ", "*/"},
			func(begin string) bool { return strings.HasPrefix(line, begin) }):
			line = "\n" // errors keep their line numbers
		case extension == ".css":
			line = spaceRemover.Replace(line)
		case extension == ".js" && !strings.ContainsAny(line, "'/\\") && strings.Count(line, "`") <= 2:
			line = compactScript(line)
		}
		out.WriteString(line)
	}
	return []byte(out.String())
}

var literalPattern = regexp.MustCompile("\"[^\"]*\"|`[^`]*`")

// compactScript removes spaces outside of literals.
func compactScript(line string) string {
	var out strings.Builder
	end := 0
	for _, literal := range literalPattern.FindAllStringIndex(line, -1) {
		out.WriteString(operatorRemover.Replace(spaceRemover.Replace(line[end:literal[0]])))
		out.WriteString(line[literal[0]:literal[1]])
		end = literal[1]
	}
	return out.String() + operatorRemover.Replace(spaceRemover.Replace(line[end:]))
}

// operatorRemover removes spaces of scripts that have a meaning in CSS.
var operatorRemover = strings.NewReplacer(" !== ", "!==", " + ", "+", " < ", "<", " > ", ">", " >= ", ">=",
	" * ", "*", " % ", "%", "if (", "if(", "for (", "for(")

var spaceRemover = strings.NewReplacer(": ", ":", "; ", ";", " {", "{", "{ ", "{", " }", "}", ", ", ",",
	" = ", "=",
	" => ", "=>", " === ", "===", " ? ", "?", " : ", ":", " && ", "&&", " || ", "||", " ?? ", "??")

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

func serveAsset(w http.ResponseWriter, r *http.Request) {
	file, ok := assets()[r.URL.Path]
	if !ok {
		writeError(w, http.StatusNotFound, errPageNotFound)
		return
	}
	w.Header().Set("Content-Type", file.contentType)
	w.Header().Set("Cache-Control", "no-cache") // revalidate with the ETag
	w.Header().Set("ETag", file.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.content))
}

var errPageNotFound = notFound("page not found")
