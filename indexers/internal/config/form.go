package config

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// The types below are the form of a config file: which fields there are, and what they take. The
// decoder takes the names of the fields from them, and [Schema] is made of them, so that the two
// cannot differ. The tags mean:
//
//	json      the name of the field
//	doc       what it is for
//	required  "true" when it must be there
//	hint      what to do when it is not, or, where it need not be there, when the text looks otherwise than pattern says
//	enum      the words it takes
//	const     the only word it takes
//	default   what it is when it is left out
//	min, max  the bounds of a number
//	pattern   what a text has to look like: the name of a textForm
//	empty     "true" when a list or a text may be empty
//	with      another field that has to be there too
//	without   fields that must not be there too
//	reserved  the words that a name cannot be
//	oneOf     on the field _: fields of which exactly one has to be there; sets of them are separated by semicolons
//	some      on the field _: "true" when at least one field has to be there
//
// Types that take more than a map are known to [Schema] by name.

type configForm struct {
	APIVersion string   `json:"apiVersion" doc:"The version of the form." required:"true" hint:"write apiVersion: crdcache.dev/v1alpha1" const:"crdcache.dev/v1alpha1"`
	Kind       string   `json:"kind" doc:"The kind of the document." required:"true" hint:"write kind: IndexConfig" const:"IndexConfig"`
	Metadata   metaForm `json:"metadata" doc:"The name of the config." required:"true" hint:"add metadata: {name: ...}, a name of your choice"`
	Spec       specForm `json:"spec" doc:"What the config declares." required:"true" hint:"add spec with a list of resources"`
}

type metaForm struct {
	Name string `json:"name" doc:"A name of your choice, unique among all configs that are loaded together." required:"true" hint:"add metadata: {name: ...}, a name of your choice" pattern:"name"`
	// Tools such as kustomize add these.
	Labels      textsForm `json:"labels" doc:"Labels of the config, which mean nothing to crdcache."`
	Annotations textsForm `json:"annotations" doc:"Annotations of the config, which mean nothing to crdcache."`
}

// textsForm is a map of any names to texts.
type textsForm struct{}

type specForm struct {
	Defaults  defaultsForm   `json:"defaults" doc:"What holds for all resources of the document unless they say otherwise."`
	Resources []resourceForm `json:"resources" doc:"The resources and their indexes." required:"true" hint:"add at least one resource, with name, match and indexes"`
}

type defaultsForm struct {
	Storage storageForm `json:"storage" doc:"How objects are kept."`
	Prune   pruneForm   `json:"prune" doc:"What is cut out of objects before they are kept."`
	Index   limitsForm  `json:"index" doc:"What holds for all indexes."`
}

type storageForm struct {
	Mode string `json:"mode" doc:"The form in which objects are kept." required:"true" hint:"write storage: {mode: packed}" enum:"packed,compressed,adaptive,object,metadata"`
}

type pruneForm struct {
	Presets           []string   `json:"presets" doc:"What is cut out often, by name." enum:"managedFields,lastApplied" empty:"true"`
	Remove            []pathForm `json:"remove" doc:"Paths to what is cut out." empty:"true"`
	RemoveAnnotations []string   `json:"removeAnnotations" doc:"Names of annotations that are cut out." empty:"true"`
}

type limitsForm struct {
	Dialect       string `json:"dialect" doc:"How ['a.b'] is read in paths: as one key, or as two like kubectl does." enum:"literal,kubectl" default:"literal"`
	MaxValues     int    `json:"maxValues" doc:"How many values of one object are kept." min:"1" max:"10000" default:"64"`
	MaxValueBytes int    `json:"maxValueBytes" doc:"How long a value may be, as it is written, to be kept; of a composite value, its parts together." min:"1" max:"1048576" default:"1024"`
}

type resourceForm struct {
	Name       string          `json:"name" doc:"A name of your choice, unique among all configs that are loaded together." required:"true" hint:"add name: ..., a name of your choice" pattern:"name"`
	Match      matchForm       `json:"match" doc:"Which objects are meant." required:"true" hint:"add match: {group: ..., version: ..., resource: ...}"`
	Optional   bool            `json:"optional" doc:"Whether there may be no such resource yet." default:"false"`
	Storage    storageForm     `json:"storage" doc:"How objects are kept."`
	Prune      pruneForm       `json:"prune" doc:"What is cut out of objects before they are kept. A field that is there replaces the one of the defaults."`
	Namespaces namespacesForm  `json:"namespaces" doc:"To which namespaces the resource is limited."`
	Selectors  selectorsForm   `json:"selectors" doc:"Selectors that the server evaluates."`
	Indexes    []indexForm     `json:"indexes" doc:"The indexes."`
	References []referenceForm `json:"references" doc:"What the objects refer to."`
}

type referenceForm struct {
	Name string     `json:"name" doc:"What queries call the reference." required:"true" hint:"add name: ..., a name of your choice" pattern:"name" reserved:"owners"`
	Each pathForm   `json:"each" doc:"The elements, each of which refers to an object. Paths begin at the element then, those with $ at the object."`
	To   targetForm `json:"to" doc:"What is referred to." required:"true" hint:"add to: {group: ..., kind: ..., name: PATH}"`
	When string     `json:"when" doc:"A condition on the object, which is @ there; other objects refer to nothing."`
}

type targetForm struct {
	_          struct{}            `oneOf:"group|apiVersion;resource|kind"`
	Group      fixedOrFieldForm    `json:"group" doc:"The API group, the same for all; or the path to it." empty:"true"`
	APIVersion fieldForm           `json:"apiVersion" doc:"The path to an apiVersion, whose group counts."`
	Resource   string              `json:"resource" doc:"The plural name of the type." hint:"write the plural name, such as issuers" pattern:"name"`
	Kind       fixedOrFieldForm    `json:"kind" doc:"The kind, the same for all; or the path to it."`
	Name       pathForm            `json:"name" doc:"Where the name is." required:"true" hint:"add name: with the path to the name"`
	Namespace  targetNamespaceForm `json:"namespace" doc:"own: the namespace of the object; none: for types without namespaces; {value: NAME}: the same for all; or the path to it, and the object's own namespace where it is missing." default:"own"`
}

// fixedOrFieldForm is a text, or the map that its fields make.
type fixedOrFieldForm struct{ fieldForm }

type fieldForm struct {
	Path    pathForm `json:"path" doc:"Where the text is." required:"true" hint:"add path: with the path to the field"`
	Missing string   `json:"missing" doc:"The text where there is none." empty:"true"`
}

// targetNamespaceForm is a word, a path, or the map that its fields make.
type targetNamespaceForm struct {
	Value string `json:"value" doc:"The name of a namespace." required:"true" hint:"add value: with the name of a namespace" pattern:"label"`
}

type matchForm struct {
	_        struct{} `oneOf:"resource|kind"`
	Group    string   `json:"group" doc:"The API group; empty for the core group. It may be a pattern, in which * stands for any run of characters." required:"true" hint:"write group: example.com, or group: \"\" for the core group" empty:"true" pattern:"pattern"`
	Version  string   `json:"version" doc:"The version. Without it, the one that the server prefers when the resource is looked up." hint:"write a version such as v1, or leave it out for the one that the server prefers" pattern:"name"`
	Versions string   `json:"versions" doc:"preferred: the version that the server prefers, also when that changes." enum:"preferred" without:"version"`
	Resource string   `json:"resource" doc:"The plural name. It may be a pattern." hint:"write the plural name, such as certificates, or a pattern" pattern:"pattern"`
	Kind     string   `json:"kind" doc:"The kind, which is looked up." hint:"write a kind such as Certificate; patterns go with resource" pattern:"name"`
}

type namespacesForm struct {
	_       struct{} `some:"true"`
	Include []string `json:"include" doc:"Names and patterns of namespaces; without it, all of them." pattern:"namespace"`
	Exclude []string `json:"exclude" doc:"Names and patterns of namespaces that are left out, however they are included." pattern:"namespace"`
}

type selectorsForm struct {
	Labels string `json:"labels" doc:"A label selector." empty:"true"`
	Fields string `json:"fields" doc:"A field selector." empty:"true"`
}

type indexForm struct {
	_             struct{}        `oneOf:"path|paths|label|annotation|owner|key"`
	Name          string          `json:"name" doc:"What queries call the index." required:"true" hint:"add name: ..., which is what look-ups use" pattern:"name" reserved:"namespace,name,age"`
	Path          pathForm        `json:"path" doc:"Where the values are."`
	Paths         []pathForm      `json:"paths" doc:"Where the values may be: the first path that leads to any counts."`
	Label         string          `json:"label" doc:"The name of a label."`
	Annotation    string          `json:"annotation" doc:"The name of an annotation."`
	Owner         string          `json:"owner" doc:"Kind and name of the owners, or of the controller alone." enum:"any,controller" without:"type,transform,missing"`
	Each          pathForm        `json:"each" doc:"With key: the elements in which the keys are looked up." with:"key"`
	Key           []keyForm       `json:"key" doc:"The parts of a composite value." without:"type,transform,missing"`
	Type          string          `json:"type" doc:"How values are read and compared. Without it, as text." enum:"string,int,number,bool,quantity,duration,time,date,ip,cidr,semver"`
	Order         string          `json:"order" doc:"sorted indexes can be asked for ranges, and results sorted by them." enum:"hash,sorted" default:"hash"`
	Unique        string          `json:"unique" doc:"warn: no two objects should have the same value." enum:"warn"`
	Transform     []transformForm `json:"transform" doc:"What is done to a value before it is kept, in order."`
	Missing       missingForm     `json:"missing" doc:"What stands for a missing value."`
	When          string          `json:"when" doc:"A condition on the object, which is @ there; other objects are not in the index."`
	Dialect       string          `json:"dialect" doc:"How ['a.b'] is read in paths." enum:"literal,kubectl"`
	MaxValues     int             `json:"maxValues" doc:"How many values of one object are kept." min:"1" max:"10000"`
	MaxValueBytes int             `json:"maxValueBytes" doc:"How long a value may be, as it is written, to be kept; of a composite value, its parts together." min:"1" max:"1048576"`
}

type keyForm struct {
	_          struct{}        `oneOf:"path|paths|label|annotation"`
	Name       string          `json:"name" doc:"What the part is called." required:"true" hint:"add name: ..., which says what the value is" pattern:"name"`
	Path       pathForm        `json:"path" doc:"Where the values are. With each, a path that begins with $ starts at the object."`
	Paths      []pathForm      `json:"paths" doc:"Where the values may be: the first path that leads to any counts."`
	Label      string          `json:"label" doc:"The name of a label."`
	Annotation string          `json:"annotation" doc:"The name of an annotation."`
	Type       string          `json:"type" doc:"How values are read and compared. Without it, as text." enum:"string,int,number,bool,quantity,duration,time,date,ip,cidr,semver"`
	Transform  []transformForm `json:"transform" doc:"What is done to a value before it is kept, in order."`
	Missing    missingForm     `json:"missing" doc:"What stands for a missing value."`
}

// pathForm is an expression, or a list of names.
type pathForm struct{}

// transformForm is a word, or the map that its fields make.
type transformForm struct {
	Regex regexForm `json:"regex" doc:"A regular expression (RE2); the value becomes what it matches." required:"true" hint:"write lower, upper, trim or {regex: {match: ...}}"`
}

type regexForm struct {
	Match string    `json:"match" doc:"The expression." required:"true" hint:"write {match: '^https?://([^/]+)', group: 1}"`
	Group groupForm `json:"group" doc:"The group that becomes the value, by number or name; without it, all that matches."`
}

// groupForm is the number or the name of a group.
type groupForm struct{}

// missingForm is a word, null, or the map that its fields make.
type missingForm struct {
	_     struct{}  `oneOf:"value|path"`
	Value valueForm `json:"value" doc:"The value."`
	Path  pathForm  `json:"path" doc:"Where the value is, read as the missing one would be. With each, a path that begins with $ starts at the object."`
}

// valueForm is a text, a number or a boolean.
type valueForm struct{}

// formFields holds the names of the fields of each form.
var formFields sync.Map // reflect.Type to []string

// fieldsOf gives the names of the fields of a form, in order.
func fieldsOf[T any]() []string {
	t := reflect.TypeFor[T]()
	if names, ok := formFields.Load(t); ok {
		return names.([]string)
	}
	var names []string
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("json"); name != "" {
			names = append(names, name)
		}
	}
	formFields.Store(t, names)
	return names
}

// tagOf gives the tag of a field of a form.
func tagOf[T any](field string) reflect.StructTag {
	t := reflect.TypeFor[T]()
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("json") == field {
			return f.Tag
		}
	}
	return ""
}

// wordsOf gives the words that a field of a form takes.
func wordsOf[T any](field string) []string { return strings.Split(tagOf[T](field).Get("enum"), ",") }

// bounds are the least and the most that a number may be.
type bounds struct{ least, most int }

// boundsOf gives the bounds of a field of a form.
func boundsOf[T any](field string) bounds {
	tag := tagOf[T](field)
	return bounds{numberOf(tag.Get("min")), numberOf(tag.Get("max"))}
}

func numberOf(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// oneOf gives the fields of a form of which exactly one has to be there.
func oneOf[T any]() []string {
	field, _ := reflect.TypeFor[T]().FieldByName("_")
	return strings.Split(field.Tag.Get("oneOf"), "|")
}

// textForm is what a text has to look like.
type textForm struct {
	*regexp.Regexp
	// hint says it in words.
	hint string
}

// textForms are the values of the tag pattern.
var textForms = map[string]textForm{
	"name":      {nameForm, "use letters, digits, and between them . _ -, at most 253 in all"},
	"namespace": {namespaceForm, "use lower-case letters, digits, - and, for any run of characters, *"},
	"label":     {labelForm, "use lower-case letters, digits and between them -, at most 63 in all"},
	"pattern":   {patternForm, "use letters, digits, - . and, for any run of characters, *"},
}

var (
	nameForm      = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)
	namespaceForm = regexp.MustCompile(`^[a-z0-9*]([a-z0-9*-]{0,61}[a-z0-9*])?$`)
	labelForm     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	patternForm   = regexp.MustCompile(`^[A-Za-z0-9*]([A-Za-z0-9.*-]{0,251}[A-Za-z0-9*])?$`)
)

// patternOf gives what the text of a field of a form has to look like.
func patternOf[T any](field string) textForm {
	tag := tagOf[T](field)
	form := textForms[tag.Get("pattern")]
	if hint := tag.Get("hint"); hint != "" && tag.Get("required") == "" {
		form.hint = hint
	}
	return form
}

// requirement is a field that has to be there.
type requirement struct{ field, hint string }

// requirementsOf gives the fields of a form that have to be there, in order.
func requirementsOf[T any]() (all []requirement) {
	t := reflect.TypeFor[T]()
	for i := range t.NumField() {
		if tag := t.Field(i).Tag; tag.Get("required") == "true" {
			all = append(all, requirement{tag.Get("json"), tag.Get("hint")})
		}
	}
	return all
}
