package harness

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// WriteSection replaces the content of a section in a file, or appends the section.
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

// replaceSection replaces the content between the comments that mark a section. If there is none, it appends
// the section with a heading.
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
