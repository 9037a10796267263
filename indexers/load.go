package indexers

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/internal/naming"
)

// Source is the content of a config file.
type Source struct {
	// Name is the file name in findings.
	Name string
	Data []byte
	// Err is the error of reading the file; [Parse] reports it as a finding.
	Err error
}

// Load reads and parses files as one config; see [Parse]. An unreadable file is a finding, too.
func Load(paths ...string) (*Config, error) { return Parse(ReadSources(paths...)...) }

// ReadSources calls [ReadSource] for each path and stores the errors in Err.
func ReadSources(paths ...string) []Source {
	return naming.Map(paths, func(path string) Source {
		source, err := ReadSource(path)
		source.Err = err
		return source
	})
}

// ReadSource reads a file. It stops shortly after the maximum size of a config, which [Parse] rejects, so
// that a file without end does no harm.
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

// Parse parses sources as one config. A source is YAML or JSON with one or more IndexConfig documents. Names
// of resources are unique across all of them. The error is a [*ConfigError] with all errors; the config is
// nil then.
func Parse(sources ...Source) (*Config, error) {
	resources, findings := loadResources(sources)
	config, err := newConfig(resources, findings)
	if err == nil {
		sums := naming.Texts(sources, func(s Source) string { return fmt.Sprintf("%x", sha256.Sum256(s.Data)) })
		slices.Sort(sums)
		config.digest = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(sums, "\n"))))
	}
	return config, err
}

// loadResources returns the resources that could be parsed, without their invalid parts, and all findings in
// the order of files and positions.
func loadResources(sources []Source) ([]*Resource, []Diagnostic) {
	l := loader{configPositions: map[string]string{}, resourcePositions: map[string]string{}}
	for n, s := range sources {
		if s.Err != nil {
			f := &sourceFile{name: s.Name, number: n, lines: []string{""}}
			l.report(f.finding(codeFile, position{}, "the file cannot be read: "+s.Err.Error(),
				"give the path of a file that exists and is readable"))
			continue
		}
		l.addFile(n, s.Name, withoutByteOrderMarks(s.Data))
	}
	sortDiagnostics(l.findings)
	return l.resources, l.findings
}

func newConfig(resources []*Resource, findings []Diagnostic) (*Config, error) {
	warnings, err := splitFindings(findings)
	if err != nil {
		return nil, err
	}
	return &Config{Resources: resources, Warnings: warnings}, nil
}

func splitFindings(findings []Diagnostic) (warnings []Diagnostic, err error) {
	var errs []Diagnostic
	for _, f := range findings {
		if f.isWarning() {
			warnings = append(warnings, f)
		} else {
			errs = append(errs, f)
		}
	}
	if len(errs) > 0 {
		return warnings, &ConfigError{Diagnostics: errs, Warnings: warnings}
	}
	return warnings, nil
}

// Finding makes a diagnostic at the position of the resource's match, for programs that look up resources.
func (r *Resource) Finding(code Code, message, hint string) Diagnostic {
	return r.file.finding(code, r.positions.name, message, hint)
}

// maxSourceBytes is the maximum size of a file.
const maxSourceBytes = 4 << 20

// loader collects the content of all sources of one config.
type loader struct {
	resources         []*Resource
	findings          []Diagnostic
	configPositions   map[string]string // by metadata.name
	resourcePositions map[string]string
}

func (l *loader) report(f Diagnostic) { l.findings = append(l.findings, f) }

// addFile decodes the content of the file with a number.
func (l *loader) addFile(number int, name string, data []byte) {
	f := newSourceFile(name, string(data))
	f.number = number
	switch valid := validPrefix(data); {
	case len(data) > maxSourceBytes:
		l.report(f.finding(codeFile, position{}, "the file is larger than 4 MiB", "split it into several files"))
		return
	case valid < len(data):
		before := splitLines(string(data[:valid]))
		at := position{len(before), utf8.RuneCountInString(before[len(before)-1]) + 1, 1}
		message := "this is not UTF-8"
		if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
			f.lines = []string{""}
			message = "this is UTF-16" // its bytes would be unreadable in findings
		}
		l.report(f.finding(codeYAML, at, message, "save the file in UTF-8"))
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
		(&decoder{loader: l, file: f}).decodeDocument(document.Content[0])
	}
	if documents == 0 {
		l.report(f.finding(codeEmpty, position{}, "the file holds no "+Kind, "begin with apiVersion: "+
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

func sortDiagnostics(findings []Diagnostic) {
	slices.SortStableFunc(findings, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.fileNumber, b.fileNumber), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column))
	})
}
