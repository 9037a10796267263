package config

// The types below are the form of a config file: which fields there are, and what they take. The decoder
// reads a file into them, and [Schema] is made of them. The tags of a field mean:
//
//	json      the name of the field
//	doc       what it is for
//	what      what errors call it, if not its name in quotes
//	each      what errors call an element of the list
//	required  "true" when it must be there
//	hint      what to do when it is not, or, where it need not be there, when its text is refused
//	list      what to do when the list is empty, or is no list
//	enum      the words it takes
//	yes, no   what to do when true or false stands in place of a word
//	const     the only word it takes
//	default   what it is when it is left out
//	min, max  the bounds of a number
//	pattern   what a text has to look like: the name of a textRule
//	empty     "true" when a list or a text may be empty
//	single    "true" when one element may stand in place of the list
//	with      another field that has to be there too
//	without   fields that must not be there too
//	conflict  what to do against a conflict of with or without
//	reserved  the words that a name cannot be
//
// The tags of a field _ are rules for the form:
//
//	oneOf     exactly one of these fields has to be there
//	none      the error when none of them is there, and hint what to do then
//	both      what to do when several of them are there
//	some      what to do when no field is there at all
//
// Types that take more than a map, and types of forms with raw, whose fields are read later, are known to
// [Schema] by name.

type configForm struct {
	written
	APIVersion textField `json:"apiVersion" doc:"The version of the form." required:"true" hint:"write apiVersion: crdcache.dev/v1alpha1" const:"crdcache.dev/v1alpha1"`
	Kind       textField `json:"kind" doc:"The kind of the document." required:"true" hint:"write kind: IndexConfig" const:"IndexConfig"`
	Metadata   metaForm  `json:"metadata" doc:"The name of the config." required:"true" hint:"add metadata: {name: ...}, a name of your choice"`
	Spec       specForm  `json:"spec" doc:"What the config declares." required:"true" hint:"add spec with a list of resources"`
}

type metaForm struct {
	raw
	Name textField `json:"name" doc:"A name of your choice, unique among all configs that are loaded together." required:"true" hint:"add metadata: {name: ...}, a name of your choice" pattern:"name" what:"the name"`
	// Tools such as kustomize add these.
	Labels      textsForm `json:"labels" doc:"Labels of the config, which mean nothing to crdcache."`
	Annotations textsForm `json:"annotations" doc:"Annotations of the config, which mean nothing to crdcache."`
}

// textsForm is a map of any names to texts.
type textsForm struct{}

type specForm struct {
	raw
	Defaults  defaultsForm            `json:"defaults" doc:"What holds for all resources of the document unless they say otherwise."`
	Resources listField[resourceForm] `json:"resources" doc:"The resources and their indexes." required:"true" hint:"add at least one resource, with name, match and indexes" each:"a resource"`
}

type defaultsForm struct {
	written
	Storage storageForm `json:"storage" doc:"How objects are kept."`
	Prune   pruneForm   `json:"prune" doc:"What is cut out of objects before they are kept."`
	Index   limitsForm  `json:"index" doc:"What holds for all indexes."`
}

type storageForm struct {
	written
	Mode textField `json:"mode" doc:"The form in which objects are kept." required:"true" hint:"write storage: {mode: packed}" enum:"packed,compressed,adaptive,object,metadata"`
}

type pruneForm struct {
	written
	Presets           listField[textField] `json:"presets" doc:"What is cut out often, by name." enum:"managedFields,lastApplied" empty:"true" each:"a preset"`
	Remove            listField[pathForm]  `json:"remove" doc:"Paths to what is cut out." empty:"true" each:"a path to remove"`
	RemoveAnnotations listField[textField] `json:"removeAnnotations" doc:"Names of annotations that are cut out." empty:"true" each:"an annotation" hint:"write the whole name, such as example.io/blob"`
}

type limitsForm struct {
	written
	Dialect       textField   `json:"dialect" doc:"How ['a.b'] is read in paths: as one key, or as two like kubectl does." enum:"literal,kubectl" default:"literal"`
	MaxValues     numberField `json:"maxValues" doc:"How many values of one object are kept." min:"1" max:"10000" default:"64"`
	MaxValueBytes numberField `json:"maxValueBytes" doc:"How long a value may be, as it is written, to be kept; of a composite value, its parts together." min:"1" max:"1048576" default:"1024"`
}

type resourceForm struct {
	written
	Name       textField                `json:"name" doc:"A name of your choice, unique among all configs that are loaded together." required:"true" hint:"add name: ..., a name of your choice" pattern:"name" what:"the name of a resource"`
	Match      matchForm                `json:"match" doc:"Which objects are meant." required:"true" hint:"add match: {group: ..., version: ..., resource: ...}"`
	Optional   boolField                `json:"optional" doc:"Whether there may be no such resource yet." default:"false"`
	Storage    storageForm              `json:"storage" doc:"How objects are kept."`
	Prune      pruneForm                `json:"prune" doc:"What is cut out of objects before they are kept. A field that is there replaces the one of the defaults."`
	Namespaces namespacesForm           `json:"namespaces" doc:"To which namespaces the resource is limited."`
	Selectors  selectorsForm            `json:"selectors" doc:"Selectors that the server evaluates."`
	Indexes    listField[indexForm]     `json:"indexes" doc:"The indexes." each:"an index" list:"add an index, such as {name: owner, path: .spec.owner}, or remove it"`
	References listField[referenceForm] `json:"references" doc:"What the objects refer to." each:"a reference" list:"add a reference, such as {name: owner, to: {group: example.com, kind: Team, name: .spec.team}}, or remove it"`
}

type referenceForm struct {
	written
	Name textField     `json:"name" doc:"What queries call the reference." required:"true" hint:"add name: ..., a name of your choice" pattern:"name" reserved:"owners" what:"the name of a reference"`
	Each pathForm      `json:"each" doc:"The elements, each of which refers to an object. Paths begin at the element then, those with $ at the object."`
	To   targetForm    `json:"to" doc:"What is referred to." required:"true" hint:"add to: {group: ..., kind: ..., name: PATH}"`
	When conditionForm `json:"when" doc:"A condition on the object, which is @ there; other objects refer to nothing."`
}

type targetForm struct {
	written
	_          struct{}            `oneOf:"group|apiVersion" none:"the target has neither \"group\" nor \"apiVersion\"" hint:"add group: with the API group (\"\" for the core group), or apiVersion: {path: ...}" both:"keep one of them"`
	_          struct{}            `oneOf:"resource|kind" none:"the target has neither \"resource\" nor \"kind\"" hint:"add resource: with the plural name, or kind: with the kind or {path: ...}" both:"keep one of them"`
	Group      fixedOrFieldForm    `json:"group" doc:"The API group, the same for all; or the path to it." empty:"true"`
	APIVersion fieldForm           `json:"apiVersion" doc:"The path to an apiVersion, whose group counts."`
	Resource   textField           `json:"resource" doc:"The plural name of the type." hint:"write the plural name, such as issuers" pattern:"name"`
	Kind       fixedOrFieldForm    `json:"kind" doc:"The kind, the same for all; or the path to it."`
	Name       pathForm            `json:"name" doc:"Where the name is." required:"true" hint:"add name: with the path to the name"`
	Namespace  targetNamespaceForm `json:"namespace" doc:"own: the namespace of the object; none: for types without namespaces; {value: NAME}: the same for all; or the path to it, and the object's own namespace where it is missing." default:"own"`
}

// fixedOrFieldForm is a text, or the map that its fields make.
type fixedOrFieldForm struct{ fieldForm }

type fieldForm struct {
	raw
	Path    pathForm  `json:"path" doc:"Where the text is." required:"true" hint:"add path: with the path to the field"`
	Missing textField `json:"missing" doc:"The text where there is none." empty:"true" hint:"write the text that stands for a missing one"`
}

// targetNamespaceForm is a word, a path, or the map that its fields make.
type targetNamespaceForm struct {
	raw
	Value textField `json:"value" doc:"The name of a namespace." required:"true" hint:"add value: with the name of a namespace" pattern:"label" what:"the name of a namespace"`
}

type matchForm struct {
	written
	_        struct{}  `oneOf:"resource|kind" none:"the match has neither \"resource\" nor \"kind\"" hint:"add resource: with the plural name, or kind:" both:"keep resource, which is exact"`
	Group    textField `json:"group" doc:"The API group; empty for the core group. It may be a pattern, in which * stands for any run of characters." required:"true" hint:"write group: example.com, or group: \"\" for the core group" empty:"true" pattern:"pattern"`
	Version  textField `json:"version" doc:"The version. Without it, the one that the server prefers when the resource is looked up." hint:"write a version such as v1, or leave it out for the one that the server prefers" pattern:"name"`
	Versions textField `json:"versions" doc:"preferred: the version that the server prefers, also when that changes." enum:"preferred" without:"version" conflict:"keep version for that one alone, or versions for the one that the server prefers"`
	Resource textField `json:"resource" doc:"The plural name. It may be a pattern." hint:"write the plural name, such as certificates, or a pattern" pattern:"pattern"`
	Kind     textField `json:"kind" doc:"The kind, which is looked up." hint:"write a kind such as Certificate; patterns go with resource" pattern:"name"`
}

type namespacesForm struct {
	written
	_       struct{}             `some:"add include or exclude, or remove it"`
	Include listField[textField] `json:"include" doc:"Names and patterns of namespaces; without it, all of them." pattern:"namespace" each:"a namespace" list:"name at least one namespace, such as prod or team-*, or remove it"`
	Exclude listField[textField] `json:"exclude" doc:"Names and patterns of namespaces that are left out, however they are included." pattern:"namespace" each:"a namespace" list:"name at least one namespace, such as prod or team-*, or remove it"`
}

type selectorsForm struct {
	written
	Labels textField `json:"labels" doc:"A label selector." empty:"true" hint:"write a selector such as app=web,tier!=test"`
	Fields textField `json:"fields" doc:"A field selector." empty:"true" hint:"write a selector such as metadata.name=web"`
}

type indexForm struct {
	written
	_             struct{}                 `oneOf:"path|paths|label|annotation|owner|key" none:"the index has no values" hint:"add one of path, paths, label, annotation, owner, key" both:"keep one of them, or join several values by key"`
	Name          textField                `json:"name" doc:"What queries call the index." required:"true" hint:"add name: ..., which is what look-ups use" pattern:"name" reserved:"namespace,name,age" what:"the name of an index"`
	Path          pathForm                 `json:"path" doc:"Where the values are."`
	Paths         listField[pathForm]      `json:"paths" doc:"Where the values may be: the first path that leads to any counts." each:"a path" list:"write the paths in the order in which they are tried"`
	Label         textField                `json:"label" doc:"The name of a label." hint:"write the whole name, such as example.io/team"`
	Annotation    textField                `json:"annotation" doc:"The name of an annotation." hint:"write the whole name, such as example.io/team"`
	Owner         textField                `json:"owner" doc:"Kind and name of the owners, or of the controller alone." enum:"any,controller" without:"type,transform,missing" conflict:"use each: .metadata.ownerReferences[*] with key instead of owner"`
	Each          pathForm                 `json:"each" doc:"With key: the elements in which the keys are looked up." with:"key" conflict:"add key: with paths into the element, or write path: to the value itself"`
	Key           listField[keyForm]       `json:"key" doc:"The parts of a composite value." without:"type,transform,missing" conflict:"write it in the elements of key" each:"an element of key" list:"add elements such as {name: ns, path: .metadata.namespace}"`
	Type          textField                `json:"type" doc:"How values are read and compared. Without it, as text." enum:"string,int,number,bool,quantity,duration,time,date,ip,cidr,semver"`
	Order         textField                `json:"order" doc:"sorted indexes can be asked for ranges, and results sorted by them." enum:"hash,sorted" default:"hash"`
	Unique        textField                `json:"unique" doc:"warn: no two objects should have the same value." enum:"warn" yes:"write unique: warn, because a cache cannot refuse what the server has" no:"leave it out, or write unique: warn"`
	Transform     listField[transformForm] `json:"transform" doc:"What is done to a value before it is kept, in order." each:"a transform" list:"name at least one of lower, upper, trim, regex" single:"true"`
	Missing       missingForm              `json:"missing" doc:"What stands for a missing value."`
	When          conditionForm            `json:"when" doc:"A condition on the object, which is @ there; other objects are not in the index."`
	Dialect       textField                `json:"dialect" doc:"How ['a.b'] is read in paths." enum:"literal,kubectl"`
	MaxValues     numberField              `json:"maxValues" doc:"How many values of one object are kept." min:"1" max:"10000"`
	MaxValueBytes numberField              `json:"maxValueBytes" doc:"How long a value may be, as it is written, to be kept; of a composite value, its parts together." min:"1" max:"1048576"`
}

type keyForm struct {
	written
	_          struct{}                 `oneOf:"path|paths|label|annotation" none:"the element of key has no value" hint:"add one of path, paths, label, annotation" both:"keep one of them"`
	Name       textField                `json:"name" doc:"What the part is called." required:"true" hint:"add name: ..., which says what the value is" pattern:"name" what:"the name of a key"`
	Path       pathForm                 `json:"path" doc:"Where the values are. With each, a path that begins with $ starts at the object."`
	Paths      listField[pathForm]      `json:"paths" doc:"Where the values may be: the first path that leads to any counts." each:"a path" list:"write the paths in the order in which they are tried"`
	Label      textField                `json:"label" doc:"The name of a label." hint:"write the whole name, such as example.io/team"`
	Annotation textField                `json:"annotation" doc:"The name of an annotation." hint:"write the whole name, such as example.io/team"`
	Type       textField                `json:"type" doc:"How values are read and compared. Without it, as text." enum:"string,int,number,bool,quantity,duration,time,date,ip,cidr,semver"`
	Transform  listField[transformForm] `json:"transform" doc:"What is done to a value before it is kept, in order." each:"a transform" list:"name at least one of lower, upper, trim, regex" single:"true"`
	Missing    missingForm              `json:"missing" doc:"What stands for a missing value."`
}

// conditionForm is a condition on an object.
type conditionForm struct{ raw }

// pathForm is an expression, or a list of names.
type pathForm struct{ raw }

// transformForm is a word, or the map that its fields make.
type transformForm struct {
	raw
	Regex regexForm `json:"regex" doc:"A regular expression (RE2); the value becomes what it matches." required:"true" hint:"write lower, upper, trim or {regex: {match: ...}}"`
}

type regexForm struct {
	written
	Match textField `json:"match" doc:"The expression." required:"true" hint:"write {match: '^https?://([^/]+)', group: 1}"`
	Group groupForm `json:"group" doc:"The group that becomes the value, by number or name; without it, all that matches."`
}

// groupForm is the number or the name of a group.
type groupForm struct{ raw }

// missingForm is a word, null, or the map that its fields make.
type missingForm struct {
	raw
	_     struct{}  `oneOf:"value|path" none:"\"missing\" has no \"value\"" hint:"write skip, null, report, {value: X} or {path: X}" both:"keep one of them"`
	Value valueForm `json:"value" doc:"The value."`
	Path  pathForm  `json:"path" doc:"Where the value is, read as the missing one would be. With each, a path that begins with $ starts at the object."`
}

// valueForm is a text, a number or a boolean.
type valueForm struct{ raw }
