package indexers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// maxSourceBytes bounds a file; a config that people write is far below.
const maxSourceBytes = 4 << 20

// Source is a file that has been read.
type Source struct {
	// Name is what findings call the file.
	Name string
	Data []byte
}

// Load reads and parses files as one config; see [Parse]. Files that cannot be read are findings too.
func Load(paths ...string) (*Config, error) {
	l := newLoader()
	for _, path := range paths {
		source, err := ReadSource(path)
		if err != nil {
			f := newFile(path, "")
			l.report(f.diagnostic(CodeFile, place{}, "the file cannot be read: "+err.Error(), "give the path of a file that exists and is readable"))
			continue
		}
		l.add(source)
	}
	return l.finish()
}

// ReadSource reads a file. Of one that is too long for a config it reads little more than what makes [Parse] refuse
// it, so that a file without an end does no harm.
func ReadSource(path string) (Source, error) {
	source := Source{Name: path}
	f, err := os.Open(path)
	if err != nil {
		return source, err
	}
	defer f.Close()
	source.Data, err = io.ReadAll(io.LimitReader(f, maxSourceBytes+1))
	return source, err
}

// Parse reads sources as one config. A source holds YAML or JSON: one IndexConfig or more, as
// separate documents. Names of resources are unique across all of them. The error is a
// [*ConfigError] with everything that is wrong; there is no config then.
func Parse(sources ...Source) (*Config, error) {
	l := newLoader()
	for _, s := range sources {
		l.add(s)
	}
	return l.finish()
}

// loader collects what all sources declare.
type loader struct {
	config   Config
	findings []finding
	files    int
	configs  map[string]string // metadata.name to its place
	names    map[string]string // names of resources to their places
}

// finding remembers the order of the files.
type finding struct {
	Diagnostic
	file int
}

func newLoader() *loader {
	return &loader{configs: map[string]string{}, names: map[string]string{}}
}

func (l *loader) report(d Diagnostic) {
	l.findings = append(l.findings, finding{d, l.files})
}

// add parses one source.
func (l *loader) add(s Source) {
	l.files++
	data := withoutMarks(s.Data)
	f := newFile(s.Name, string(data))
	switch valid := validPrefix(data); {
	case len(data) > maxSourceBytes:
		l.report(f.diagnostic(CodeFile, place{}, "the file is larger than 4 MiB", "split it into several files"))
		return
	case valid < len(data):
		before := splitLines(string(data[:valid]))
		at := place{len(before), utf8.RuneCountInString(before[len(before)-1]) + 1, 1}
		message := "this is not UTF-8"
		if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
			f, message = newFile(s.Name, ""), "this is UTF-16" // which shows as nothing but noise
		}
		l.report(f.diagnostic(CodeYAML, at, message, "save the file in UTF-8"))
		return
	}
	documents := 0
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			l.report(f.syntaxError(err))
			return
		}
		if len(document.Content) == 0 || isNull(document.Content[0]) {
			continue
		}
		documents++
		(&decoding{loader: l, file: f}).document(document.Content[0])
	}
	if documents == 0 {
		l.report(f.diagnostic(CodeEmpty, place{}, "the file holds no "+Kind, "begin with apiVersion: "+APIVersion+" and kind: "+Kind))
	}
}

// withoutMarks removes byte order marks, which are where a file begins, and where files were joined.
func withoutMarks(data []byte) []byte {
	const mark = "\ufeff"
	data = bytes.TrimPrefix(data, []byte(mark))
	return bytes.ReplaceAll(data, []byte("\n"+mark), []byte("\n"))
}

// validPrefix gives the number of bytes before the first that is not UTF-8.
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

// finish gives the config, or all errors in the order of their places.
func (l *loader) finish() (*Config, error) {
	slices.SortStableFunc(l.findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	all := make([]Diagnostic, len(l.findings))
	for i, d := range l.findings {
		all[i] = d.Diagnostic
	}
	warnings, err := divide(all)
	if err != nil {
		return nil, err
	}
	l.config.Warnings = warnings
	return &l.config, nil
}

// divide tells warnings and errors apart.
func divide(all []Diagnostic) (warnings []Diagnostic, err error) {
	var errs []Diagnostic
	for _, d := range all {
		if strings.HasPrefix(string(d.Code), "W") {
			warnings = append(warnings, d)
		} else {
			errs = append(errs, d)
		}
	}
	if len(errs) > 0 {
		return warnings, &ConfigError{Diagnostics: errs}
	}
	return warnings, nil
}

// claim records a name, and tells where it was used before.
func claim(names map[string]string, name string, f *file, at place) (before string, taken bool) {
	if before, taken = names[name]; !taken {
		names[name] = fmt.Sprintf("%s:%s", f.name, at)
	}
	return before, taken
}
