package manifest

import (
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

const (
	// maxExpansion is the factor by which aliases may enlarge a document, beyond freeExpansion.
	maxExpansion  = 10
	freeExpansion = 64 << 10
)

// mayHave reports whether a text may contain an anchor or an alias, which begins with sign.
func mayHave(text []byte, sign byte) bool {
	for i, c := range text {
		if c != sign || i+1 == len(text) || !isNameChar(text[i+1]) {
			continue
		}
		if i == 0 || text[i-1] >= 0x80 || strings.IndexByte(" \t\r\n[{,:?-", text[i-1]) >= 0 {
			return true
		}
	}
	return false
}

// isNameChar reports whether a byte may be in the name of an anchor.
func isNameChar(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' ||
		c == '-' || c >= 0x80
}

// checkAliases returns an error if aliases enlarge a text too much. The YAML library limits the number of
// nodes, but few nodes can contain much text.
func checkAliases(text []byte) error {
	if !mayHave(text, '*') {
		return nil
	}
	var node yamlv3.Node
	if err := yamlv3.Unmarshal(text, &node); err != nil {
		return err // the grammar is the same as the decoder's
	}
	limit := maxExpansion*len(text) + freeExpansion
	sizes := expansion{limit: limit, of: map[*yamlv3.Node]int{}}
	size, err := sizes.measure(&node)
	if err == nil && size > limit {
		err = errAliases(len(text))
	}
	return err
}

// expansion computes the size of nodes with their aliases expanded.
type expansion struct {
	limit int
	of    map[*yamlv3.Node]int // nodes with an anchor; -1 while they are measured
}

var errSelf = &yamlError{text: "not valid YAML: an anchor contains itself"}

func (e expansion) measure(node *yamlv3.Node) (int, error) {
	if node.Kind == yamlv3.AliasNode && node.Alias != nil {
		node = node.Alias
		if size, known := e.of[node]; known && size < 0 {
			return 0, errSelf
		} else if known {
			return size, nil
		}
	}
	if node.Anchor != "" {
		e.of[node] = -1
	}
	size := len(node.Value) + 4 // with its punctuation
	for _, child := range node.Content {
		more, err := e.measure(child)
		if err != nil {
			return 0, err
		}
		size = min(size+more, e.limit+1)
	}
	if node.Anchor != "" {
		e.of[node] = size
	}
	return size, nil
}
