// Package document writes the sections of documents that are made by runs of programs.
package document

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// WriteSection replaces the content of a section in the file of a document, or appends the section to it.
func WriteSection(path, name, content string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	updated, err := replaceSection(string(text), name, content)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(updated), 0o644)
}

// replaceSection puts the content of a section between the comments that mark it, or appends the section to
// the document with a heading of that name.
func replaceSection(document, name, content string) (string, error) {
	if name == "" || strings.ContainsAny(name, "\n<>") {
		return "", fmt.Errorf("%q cannot be a heading", name)
	}
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->\n"
	before, rest, found := strings.Cut(document, begin)
	if !found {
		return strings.TrimRight(document, "\n") + "\n\n### " + name + "\n\n" + begin + content + end, nil
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", errors.New("the end of the section " + name + " is not marked")
	}
	return before + begin + content + end + after, nil
}
