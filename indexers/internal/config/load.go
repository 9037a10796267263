package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// MaxSourceBytes is the maximum size of a file.
const MaxSourceBytes = 4 << 20

// Loader collects the content of all sources of one config.
type Loader struct {
	resources []*Resource
	findings  []Finding
	files     int               // number of files so far
	configs   map[string]string // positions of the configs by metadata.name
	names     map[string]string // positions of the resources by name
}

func NewLoader() *Loader {
	return &Loader{configs: map[string]string{}, names: map[string]string{}}
}

// Finish returns the declared resources and all findings in the order of files and positions. Invalid parts
// are left out of the resources.
func (l *Loader) Finish() ([]*Resource, []Finding) {
	Sort(l.findings)
	return l.resources, l.findings
}

// Unreadable records a source that cannot be read.
func (l *Loader) Unreadable(name string, err error) {
	l.report(l.file(name, "").Finding(CodeFile, Position{}, "the file cannot be read: "+err.Error(),
		"give the path of a file that exists and is readable"))
}

func (l *Loader) file(name, text string) *File {
	l.files++
	f := NewFile(name, text)
	f.number = l.files
	return f
}

func (l *Loader) report(f Finding) { l.findings = append(l.findings, f) }

// Add decodes a source.
func (l *Loader) Add(name string, data []byte) {
	data = withoutByteOrderMarks(data)
	f := l.file(name, string(data))
	switch valid := validPrefix(data); {
	case len(data) > MaxSourceBytes:
		l.report(f.Finding(CodeFile, Position{}, "the file is larger than 4 MiB", "split it into several files"))
		return
	case valid < len(data):
		before := splitLines(string(data[:valid]))
		at := Position{len(before), utf8.RuneCountInString(before[len(before)-1]) + 1, 1}
		message := "this is not UTF-8"
		if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
			f.clear()
			message = "this is UTF-16" // its bytes would be unreadable in findings
		}
		l.report(f.Finding(CodeYAML, at, message, "save the file in UTF-8"))
		return
	}
	documents := 0
	stream := yaml.NewDecoder(bytes.NewReader(withoutSurrogates(data)))
	for {
		var document yaml.Node
		err := stream.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			l.report(f.syntaxFinding(err))
			return
		}
		if len(document.Content) == 0 || isNull(document.Content[0]) {
			continue
		}
		documents++
		(&decoder{Loader: l, file: f}).decodeDocument(document.Content[0])
	}
	if documents == 0 {
		l.report(f.Finding(CodeEmpty, Position{}, "the file holds no "+Kind, "begin with apiVersion: "+
			APIVersion+" and kind: "+Kind))
	}
}

// withoutByteOrderMarks removes byte order marks at the beginning of the file and of lines, where files were
// concatenated.
func withoutByteOrderMarks(data []byte) []byte {
	const mark = "\ufeff"
	data = bytes.TrimPrefix(data, []byte(mark))
	return bytes.ReplaceAll(data, []byte("\n"+mark), []byte("\n"))
}

// surrogatePair matches a JSON surrogate pair, which YAML does not have, or any other escape.
var surrogatePair = regexp.MustCompile(`\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)`)

// withoutSurrogates converts the surrogate pairs of a JSON document to YAML escapes.
func withoutSurrogates(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\u`)) || !json.Valid(data) {
		return data
	}
	return surrogatePair.ReplaceAllFunc(data, func(escape []byte) []byte {
		m := surrogatePair.FindSubmatch(escape)
		if m[1] == nil {
			return escape
		}
		high, _ := strconv.ParseUint(string(m[1]), 16, 16)
		low, _ := strconv.ParseUint(string(m[2]), 16, 16)
		return fmt.Appendf(nil, `\U%08x`, utf16.DecodeRune(rune(high), rune(low)))
	})
}

// validPrefix returns the number of bytes before the first invalid UTF-8.
func validPrefix(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(data)
}

// Sort sorts findings by files and positions.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.fileNumber, b.fileNumber), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column))
	})
}

// recordName records a name. If the name is taken, it returns the position of the earlier use.
func recordName(names map[string]string, name string, f *File, at Position) (before string, exists bool) {
	if before, exists = names[name]; !exists {
		names[name] = fmt.Sprintf("%s:%s", f.name, at)
	}
	return before, exists
}
