package adopters_test

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	commentPattern     = regexp.MustCompile(`(?m)^\s*//.*$|(?s:/\*.*?\*/)`)
	declarationPattern = regexp.MustCompile(`^(?:func|type) (?:\(\w+ \*?(\w+)\) )?(\w+)`)
	importPattern      = regexp.MustCompile(`(?m)^\t(?:(\w+) )?"([^"]+)"\n`)
)

// countCode returns the number of lines with code, without comments.
func countCode(source string) (lines int) {
	for line := range strings.Lines(commentPattern.ReplaceAllString(source, "")) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	return lines
}

// deleteDeclarations deletes declarations of a formatted file, T or T.method, and imports that only they use.
func deleteDeclarations(t *testing.T, source string, names []string) string {
	t.Helper()
	missing, inside, comments := slices.Clone(names), false, 0
	var kept []string // lines; the last ones are comments
	for line := range strings.Lines(source) {
		if found := declarationPattern.FindStringSubmatch(line); found != nil {
			i := slices.Index(missing, strings.TrimPrefix(found[1]+"."+found[2], "."))
			if i >= 0 {
				missing = slices.Delete(missing, i, i+1)
				kept, comments = kept[:len(kept)-comments], 0
				inside = strings.HasSuffix(line, "{\n") || strings.HasSuffix(line, "(\n")
				continue
			}
		}
		if inside {
			inside = line[0] != '}'
			continue
		}
		if kept, comments = append(kept, line), comments+1; !strings.HasPrefix(line, "//") {
			comments = 0
		}
	}
	if len(missing) > 0 {
		t.Fatalf("the file has no %q", missing)
	}
	imports, rest, _ := strings.Cut(strings.Join(kept, ""), "\n)\n")
	code := commentPattern.ReplaceAllString(rest, "")
	return importPattern.ReplaceAllStringFunc(imports+"\n", func(line string) string {
		found := importPattern.FindStringSubmatch(line)
		name := cmp.Or(found[1], path.Base(found[2]))
		if used, _ := regexp.MatchString(`\b`+name+`\.`, code); used || name == "_" {
			return line
		}
		return ""
	}) + ")\n" + rest
}
