package indexers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// removedFields maps the fields that only deprecated versions have to their replacements.
var removedFields = map[string]string{
	`"index" dialect`:           "remove it, and write nested keys as .a.b",
	`"match" versions`:          "remove it; a version that is no longer served is replaced by the preferred one",
	`"prune" removeAnnotations`: "write remove: ['.metadata.annotations[\"NAME\"]']",
	"an index dialect":          "remove it, and write nested keys as .a.b",
	"an index owner":            "write each: '.metadata.ownerReferences[*]' and key: [{name: kind, path: .kind}, {name: name, path: .name}]",
	"an index unique":           "remove it; 'crdcache stats' shows the most frequent values",
	"an index maxValues":        "set it for all indexes in spec.defaults.index",
	"an index maxValueBytes":    "set it for all indexes in spec.defaults.index",
}

// upgrader replaces the fields that only deprecated versions have in the nodes of a document. It reports the
// fields without a replacement of the same meaning.
type upgrader struct {
	report func(code Code, at *yaml.Node, message, hint string)
	// isRewritten is set if fields were replaced. Optional.
	isRewritten *bool
}

func (u upgrader) upgradeDocument(n *yaml.Node) {
	spec := fieldOfNode(n, "spec")
	defaults := fieldOfNode(spec, "defaults")
	u.upgradePrune(defaults)
	u.removeDialect(fieldOfNode(defaults, "index"), `"index"`)
	for _, resource := range fieldOfNode(spec, "resources").Content {
		u.upgradePrune(resource)
		u.reportRemoved(fieldOfNode(resource, "match"), `"match"`, "versions")
		for _, index := range fieldOfNode(resource, "indexes").Content {
			u.upgradeIndex(index)
		}
		for _, reference := range fieldOfNode(resource, "references").Content {
			u.upgradeTarget(fieldOfNode(reference, "to"))
		}
	}
	u.upgradeForm(n, reflect.TypeFor[configForm](), "")
}

// upgradeForm corrects the case of words, which deprecated versions have in lower case, and replaces CEL
// conditions, paths that are lists of names, and names of groups.
func (u upgrader) upgradeForm(n *yaml.Node, form reflect.Type, tag reflect.StructTag) {
	if items, ok := form.FieldByName("items"); ok { // of a listField
		for _, item := range n.Content {
			u.upgradeForm(item, items.Type.Elem(), tag)
		}
		return
	}
	switch form {
	case reflect.TypeFor[textField]():
		if word := wordOf(n.Value, strings.Split(tag.Get("enum"), ",")); word != "" && word != n.Value {
			n.Value = word
			u.markRewritten()
		}
		return
	case reflect.TypeFor[pathForm]():
		if text := pathOfNames(n); text != "" {
			n.Kind, n.Tag, n.Style, n.Value, n.Content = yaml.ScalarNode, "!!str", 0, text, nil
			u.markRewritten()
		}
		return
	case reflect.TypeFor[regexForm]():
		u.upgradeGroup(n)
	}
	u.replace(n, "when", "whenCEL", fieldOfForm(fieldOfNode(n, "when"), "cel"))
	l := layoutOf(form)
	for i, name := range l.names {
		u.upgradeForm(fieldOfNode(n, name), l.fields[i].Type, l.fields[i].Tag)
	}
}

// plainName is a name that a path has without quotes.
var plainName = newLazyPattern("^[A-Za-z_][A-Za-z0-9_-]*$")

// pathOfNames returns the path of a list of names; "" for a node that is no such list.
func pathOfNames(n *yaml.Node) string {
	path := ""
	for _, item := range n.Content {
		isName := n.Kind == yaml.SequenceNode && item.Kind == yaml.ScalarNode && item.ShortTag() == "!!str"
		other, err := jsonpath.Compile(item.Value)
		isPath := err == nil && len(other.Steps()) > 1 && strings.IndexAny(item.Value, ".$@{") == 0
		if !isName || item.Value == "" || isPath {
			return ""
		}
		path += stepOf(item.Value)
	}
	return path
}

// stepOf returns the step of a path to a name.
func stepOf(name string) string {
	if plainName.compile().MatchString(name) {
		return "." + name
	}
	quoted, _ := json.Marshal(name) // a text can always be encoded
	return "[" + string(quoted) + "]"
}

// upgradeGroup replaces the name of a group in a regular expression by its number.
func (u upgrader) upgradeGroup(n *yaml.Node) {
	group := fieldOfNode(n, "group")
	expression, err := naming.CompileRegexp(fieldOfNode(n, "match").Value)
	if err != nil || group.Kind != yaml.ScalarNode || group.ShortTag() != "!!str" {
		return
	}
	if number := expression.SubexpIndex(group.Value); number > 0 {
		group.Value, group.Tag, group.Style = strconv.Itoa(number), "!!int", 0
		u.markRewritten()
	}
}

// upgradeTarget replaces the fields of a reference's target that can be of several kinds.
func (u upgrader) upgradeTarget(n *yaml.Node) {
	u.replace(n, "name", "namePath", fieldOfNode(n, "name"))
	for _, field := range []string{"group", "apiVersion", "kind"} {
		value := fieldOfNode(n, field)
		path, missing := fieldOfForm(value, "path", "missing"), *fieldOfNode(value, "missing")
		if u.replace(n, field, field+"Path", path); path.Kind == 0 || missing.Kind == 0 {
			continue
		}
		if field == "apiVersion" {
			field = "group"
			missing.Value = groupOfDefault(missing.Value)
		}
		n.Content = append(n.Content, textAt(&missing, field), &missing)
	}
	namespace := fieldOfNode(n, "namespace")
	switch value := fieldOfForm(namespace, "value"); {
	case u.remove(n, "namespace", "own") != nil:
	case value.Kind != 0:
		u.replace(n, "namespace", "namespace", value)
	case namespace.Value == "none":
		u.replace(n, "namespace", "scope", textAt(namespace, "Cluster"))
	case namespace.Kind == yaml.SequenceNode, strings.IndexAny(namespace.Value, ".$@{[") == 0:
		u.replace(n, "namespace", "namespacePath", namespace)
	}
}

// plainVersion is an apiVersion of the core group.
var plainVersion = newLazyPattern("^v[0-9]+((alpha|beta)[0-9]+)?$")

// groupOfDefault returns the group of an apiVersion, or a group as it is.
func groupOfDefault(text string) string {
	if plainVersion.compile().MatchString(text) {
		return ""
	}
	group, _, _ := strings.Cut(text, "/")
	return group
}

func (u upgrader) upgradeIndex(n *yaml.Node) {
	u.removeDialect(n, "an index")
	u.reportRemoved(n, "an index", "maxValues")
	u.reportRemoved(n, "an index", "maxValueBytes")
	u.remove(n, "unique", "warn")
	for owners, filter := range map[string]string{"any": "*", "controller": "?(@.controller==true)"} {
		if key := u.remove(n, "owner", owners); key != nil {
			n.Content = append(n.Content, fieldsAt(key, fmt.Sprintf("{each: '.metadata.ownerReferences[%s]', "+
				"key: [{name: kind, path: .kind}, {name: name, path: .name}]}", filter))...)
		}
	}
	u.upgradePart(n)
	for _, part := range fieldOfNode(n, "key").Content {
		u.upgradePart(part)
	}
}

// upgradePart replaces the short forms of the fields of a partForm.
func (u upgrader) upgradePart(n *yaml.Node) {
	u.upgradeMissing(n)
	u.upgradeTransform(n)
}

// upgradeTransform moves a regular expression that comes before other transforms to a field of its own.
func (u upgrader) upgradeTransform(n *yaml.Node) {
	transforms := fieldOfNode(n, "transform")
	items := transforms.Content
	if transforms.Kind != yaml.SequenceNode {
		items = []*yaml.Node{transforms}
	}
	isRegex := func(item *yaml.Node) bool { return item.Kind == yaml.MappingNode }
	at := slices.IndexFunc(items, isRegex)
	switch {
	case transforms.Kind == 0, transforms.Kind == yaml.SequenceNode && at < 0:
		return
	case at > 0, at == 0 && slices.ContainsFunc(items[1:], isRegex):
		u.report(codeUnknownField, items[max(at, 1)], "a regex after another transform is no longer supported",
			"write one regular expression first; (?i) ignores the case, and \\s* matches blanks")
		u.remove(n, "transform", "")
		return
	}
	u.remove(n, "transform", "")
	if at == 0 {
		n.Content = append(n.Content, items[0].Content...)
		items = items[1:]
	}
	if len(items) > 0 {
		list := listAt(n, items[0], "transform")
		list.Content = items
	}
}

// upgradePrune moves annotations to the removed paths.
func (u upgrader) upgradePrune(n *yaml.Node) {
	prune := fieldOfNode(n, "prune")
	names := fieldOfNode(prune, "removeAnnotations").Content
	if key := u.remove(prune, "removeAnnotations", ""); key != nil {
		remove := listAt(prune, key, "remove")
		for _, name := range names {
			remove.Content = append(remove.Content, textAt(name, ".metadata.annotations"+stepOf(name.Value)))
		}
	}
}

// upgradeMissing replaces null and maps: the path of a replacement becomes one of several paths.
func (u upgrader) upgradeMissing(n *yaml.Node) {
	missing := fieldOfNode(n, "missing")
	replacement := fieldOfForm(missing, "path")
	switch value := fieldOfForm(missing, "value"); {
	case missing.Kind == yaml.ScalarNode && strings.EqualFold(missing.Value, "null"):
		n.Content = append(n.Content, fieldsAt(u.remove(n, "missing", ""), "{missing: AsNull}")...)
		return
	case value.Kind == yaml.ScalarNode:
		// Values are used as written: 1.10 stays 1.10.
		key := u.remove(n, "missing", "")
		n.Content = append(n.Content, textAt(key, "default"), textAt(value, value.Value))
		return
	case replacement.Kind == 0:
		return
	}
	paths := listAt(n, u.remove(n, "missing", ""), "paths")
	for _, field := range []string{"path", "label", "annotation"} {
		value := fieldOfNode(n, field)
		if u.remove(n, field, "") == nil {
			continue
		}
		if field != "path" {
			value = textAt(value, "$.metadata."+field+"s"+stepOf(value.Value))
		}
		paths.Content = append(paths.Content, value)
	}
	paths.Content = append(paths.Content, replacement)
}

func (u upgrader) removeDialect(n *yaml.Node, noun string) {
	u.remove(n, "dialect", "literal")
	u.reportRemoved(n, noun, "dialect")
}

// reportRemoved reports and removes a field without a replacement.
func (u upgrader) reportRemoved(n *yaml.Node, noun, field string) {
	if key := u.remove(n, field, ""); key != nil {
		u.report(codeUnknownField, key, fmt.Sprintf("%q is no longer supported", field),
			removedFields[noun+" "+field])
	}
}

// remove removes a field if it has the given value; "" matches any value. It returns the key of the removed
// field, or nil.
func (u upgrader) remove(n *yaml.Node, field, value string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Value != field || value != "" && n.Content[i+1].Value != value {
			continue
		}
		n.Content = append(n.Content[:i:i], n.Content[i+2:]...)
		u.markRewritten()
		return key
	}
	return nil
}

// replace gives a field another name and another value, unless the new value is empty.
func (u upgrader) replace(n *yaml.Node, field, name string, value *yaml.Node) {
	for i := 0; n.Kind == yaml.MappingNode && value.Kind != 0 && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == field {
			n.Content[i].Value, n.Content[i+1] = name, value
			u.markRewritten()
		}
	}
}

func (u upgrader) markRewritten() {
	if u.isRewritten != nil {
		*u.isRewritten = true
	}
}

// fieldOfNode returns the value of a field of a map, or an empty node.
func fieldOfNode(n *yaml.Node, field string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == field {
			return n.Content[i+1]
		}
	}
	return &yaml.Node{}
}

// fieldOfForm returns the value of the first of the fields of a map. It returns an empty node for null, and
// for a map with other or repeated fields, so that the decoder reports the map.
func fieldOfForm(n *yaml.Node, fields ...string) *yaml.Node {
	value := fieldOfNode(n, fields[0])
	for i := 0; i+1 < len(n.Content); i += 2 {
		at := slices.Index(fields, n.Content[i].Value)
		if at < 0 || isNull(value) {
			return &yaml.Node{}
		}
		fields = slices.Concat(fields[:at], fields[at+1:])
	}
	return value
}

// listAt returns the list of a field. It adds an empty one, at the position of another node, if there is
// none.
func listAt(n, at *yaml.Node, field string) *yaml.Node {
	if fieldOfNode(n, field).Kind == 0 {
		n.Content = append(n.Content, fieldsAt(at, "{"+field+": []}")...)
	}
	return fieldOfNode(n, field)
}

func textAt(at *yaml.Node, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: at.Line, Column: at.Column}
}

// fieldsAt returns the keys and values of a map, which is valid YAML, at the position of another node.
func fieldsAt(at *yaml.Node, text string) []*yaml.Node {
	var document yaml.Node
	_ = yaml.Unmarshal([]byte(text), &document)
	var move func(n *yaml.Node)
	move = func(n *yaml.Node) {
		n.Line, n.Column = at.Line, at.Column
		for _, inner := range n.Content {
			move(inner)
		}
	}
	move(&document)
	return document.Content[0].Content
}

// Convert returns a config with a deprecated apiVersion, which [Parse] accepts, in the current version. It
// keeps comments, and the layout unless fields had to be replaced.
func Convert(data []byte) ([]byte, error) {
	lines, isRewritten := strings.SplitAfter(string(data), "\n"), false
	var encoded bytes.Buffer
	encoder := yaml.NewEncoder(&encoded)
	encoder.SetIndent(2)
	u := upgrader{isRewritten: &isRewritten, report: func(Code, *yaml.Node, string, string) {}}
	for stream := yaml.NewDecoder(bytes.NewReader(withoutSurrogates(data))); ; {
		var document yaml.Node
		err := stream.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(document.Content) == 0 {
			continue
		}
		if version := fieldOfNode(document.Content[0], "apiVersion"); IsDeprecated(version.Value) {
			line := &lines[min(version.Line, len(lines))-1]
			isRewritten = isRewritten || !strings.Contains(*line, version.Value) // an escape in the text
			*line = strings.Replace(*line, version.Value, APIVersion, 1)
			version.Value = APIVersion
			u.upgradeDocument(document.Content[0])
		}
		if err := encoder.Encode(&document); err != nil {
			return nil, err
		}
	}
	if isRewritten {
		return encoded.Bytes(), encoder.Close()
	}
	return []byte(strings.Join(lines, "")), nil
}
