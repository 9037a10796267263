package indexers

// The types below declare the fields of a config file and their constraints. The decoder reads a file into
// them and reports errors with their positions. The compile functions convert them to resources, indexes and
// references. [Schema] is generated from them. The tags of a field mean:
//
//	json      name of the field
//	doc       description
//	label     name in errors, if not the field name in quotes
//	each      name of a list element in errors
//	required  "true" if the field must be set
//	hint      remedy if it is not set or, if it is optional, if its text is invalid
//	list      remedy if the list is empty or not a list
//	enum      allowed words
//	const     the only allowed word, or several; another one has its own error
//	default   default value
//	min, max  bounds of a number
//	pattern   name of a textRule that the text must match
//	empty     "true" if a list or a text can be empty
//	with      another field that must be set too
//	without   later fields that must not be set too
//	conflict  remedy for a conflict of with or without
//	reserved  words that are not allowed as a name
//
// VERSION in a tag is the apiVersion. The fields of an embedded form belong to the form.
//
// The tags of a field _ are rules for the form:
//
//	oneOf     fields of which one must be set
//	none      error if none of them is set, and hint is the remedy; without it, all can be unset
//	both      remedy if several of them are set; without it, they can be combined
//	some      remedy if no field at all is set
//
// The compile functions read the fields of forms with a rawField.

type configForm struct {
	formHeader
	APIVersion textField `json:"apiVersion" doc:"The version of the format." required:"true" hint:"write apiVersion: VERSION" const:"VERSION"`
	Kind       textField `json:"kind" doc:"The kind of the document." required:"true" hint:"write kind: IndexConfig" const:"IndexConfig"`
	Metadata   metaForm  `json:"metadata" doc:"The metadata of the config." required:"true" hint:"add metadata: {name: ...}"`
	Spec       specForm  `json:"spec" doc:"The content of the config." required:"true" hint:"add spec with a list of resources"`
}

type metaForm struct {
	rawField
	Name textField `json:"name" doc:"A name, unique among all configs that are loaded together." required:"true" hint:"add metadata: {name: ...}" pattern:"name" label:"the name"`
	// written for crdcached, or added by tools such as kustomize
	Namespace   textField `json:"namespace" doc:"The namespace of the object in a cluster; crdcache ignores it in files."`
	Labels      textsForm `json:"labels" doc:"Labels of the config; crdcache ignores them."`
	Annotations textsForm `json:"annotations" doc:"Annotations of the config; crdcache ignores them."`
}

// textsForm is a map of arbitrary names to texts.
type textsForm struct{}

type specForm struct {
	rawField
	Defaults  defaultsForm            `json:"defaults" doc:"Defaults for all resources of the document."`
	Resources listField[resourceForm] `json:"resources" doc:"The resources and their indexes." required:"true" hint:"add at least one resource, with name, match and indexes" each:"a resource"`
}

type defaultsForm struct {
	formHeader
	storedForm
	Index limitsForm `json:"index" doc:"Defaults for all indexes."`
}

// storedForm has the fields that the defaults and a resource share.
type storedForm struct {
	Storage storageForm `json:"storage" doc:"How objects are stored."`
	Prune   pruneForm   `json:"prune" doc:"Fields that are removed from objects before they are stored. A field that a resource sets replaces the default."`
	Keep    keepForm    `json:"keep" doc:"The only fields of objects that are stored, instead of prune."`
}

type storageForm struct {
	formHeader
	Mode textField `json:"mode" doc:"The form in which objects are stored." required:"true" hint:"write storage: {mode: Packed}" enum:"Packed,Compressed,Adaptive,Object,Metadata,None"`
}

type pruneForm struct {
	formHeader
	Presets listField[textField] `json:"presets" doc:"Predefined sets of fields to remove." enum:"ManagedFields,LastApplied" empty:"true" each:"a preset"`
	Remove  listField[pathForm]  `json:"remove" doc:"Paths of fields to remove." empty:"true" each:"a path to remove"`
}

type keepForm struct {
	formHeader
	Paths listField[pathForm] `json:"paths" doc:"Paths of fields to keep, besides the ones that indexes and references read." required:"true" hint:"write keep: {paths: [.spec.field]}" empty:"true" each:"a path to keep"`
	Whole wholeForm           `json:"whole" doc:"The objects that keep all fields: those that all fields here select. All objects keep the fields that the condition reads."`
}

type wholeForm struct {
	formHeader
	_      struct{}  `some:"add labels or when, or remove it"`
	Labels textField `json:"labels" doc:"A label selector." hint:"write a selector such as app=web,tier!=test"`
	When   pathForm  `json:"when" doc:"A condition on the object, as @."`
}

type limitsForm struct {
	formHeader
	MaxValues     numberField `json:"maxValues" doc:"The maximum number of values of one object." min:"1" max:"10000" default:"64"`
	MaxValueBytes numberField `json:"maxValueBytes" doc:"The maximum length of a value in bytes; of a composite value, of all parts together." min:"1" max:"1048576" default:"1024"`
}

type resourceForm struct {
	formHeader
	Name     textField `json:"name" doc:"A name, unique among all configs that are loaded together." required:"true" hint:"add name: ..." pattern:"name" label:"the name of a resource"`
	Match    matchForm `json:"match" doc:"The type of the objects, or a pattern for types." required:"true" hint:"add match: {group: ..., version: ..., resource: ...}"`
	Optional boolField `json:"optional" doc:"Whether the type may be missing." default:"false"`
	storedForm
	Namespaces namespacesForm           `json:"namespaces" doc:"The namespaces of the objects."`
	Selectors  selectorsForm            `json:"selectors" doc:"Selectors, evaluated by the server."`
	Indexes    listField[indexForm]     `json:"indexes" doc:"The indexes." each:"an index" list:"add an index, such as {name: owner, path: .spec.owner}, or remove it"`
	References listField[referenceForm] `json:"references" doc:"References from the objects to other objects." each:"a reference" list:"add a reference, such as {name: owner, to: {group: example.com, kind: Team, namePath: .spec.team}}, or remove it"`
	Metrics    listField[metricForm]    `json:"metrics" doc:"Prometheus metrics about the objects." each:"a metric" list:"add a metric, such as {name: widgets, help: Number of widgets., labels: [{name: class, path: .spec.class}]}, or remove it"`
}

// metricForm is a metric. Its series come from an index: a declared one, or one over labels and value.
type metricForm struct {
	formHeader
	_        struct{}             `oneOf:"value|states" both:"keep one of them, or declare two metrics"`
	Name     textField            `json:"name" doc:"The name of the metric." required:"true" hint:"add name: ..., such as widgets" pattern:"metric" label:"the name of a metric"`
	Help     textField            `json:"help" doc:"The help text of the metric." required:"true" hint:"add help: with a sentence about the value"`
	Index    textField            `json:"index" doc:"An index of the resource. The metric counts the objects of each of its values, and uses no further memory." hint:"write the name of an index of this resource" without:"each,when,labels,value,states,function" conflict:"keep index, or write labels: with paths"`
	Each     pathForm             `json:"each" doc:"The path of elements to which other paths are relative; a list stands for its elements. A path that begins with $ starts at the object."`
	Labels   listField[labelForm] `json:"labels" doc:"The labels. The labels namespace and name with the paths .metadata.namespace and .metadata.name make a series for each object." each:"a label" list:"add elements such as {name: class, path: .spec.class}, or remove it"`
	Value    valueForm            `json:"value" doc:"The value of an object or element. Default: the metric counts objects."`
	States   statesForm           `json:"states" doc:"Texts of a field, with a series for each: the number of objects that have it."`
	Function textField            `json:"function" doc:"How to combine the values of objects with the same labels." enum:"Sum,Min,Max" default:"Sum" with:"value" conflict:"add value:, or remove it"`
	conditionForm
	Limit numberField `json:"limit" doc:"The maximum number of series; the values of further ones are combined in a series whose labels are other." min:"1" max:"1000000" default:"10000"`
}

type labelForm struct {
	_    struct{}  `oneOf:"path|paths|label|annotation|cel|value|elementKey" none:"the label has no value" hint:"add one of path, paths, label, annotation, cel, value, elementKey" both:"keep one of them"`
	_    struct{}  `narrows:"missing" doc:"How to treat an object without a value, whose label is empty. Report: statistics name it." enum:"Report,AsNull" hint:"write Report or AsNull, or default: with a value, because a label never removes a series" default:"AsNull"`
	Name textField `json:"name" doc:"The name of the label. It ends in * for a map: each entry is a label, whose name begins with the text before the *." required:"true" hint:"add name: ..." pattern:"labelName" label:"the name of a label"`
	partForm
	Format     textField `json:"format" doc:"Go: the text that Go prints, also for lists and maps, such as [a b]; kube-state-metrics writes it." enum:"Go" hint:"write Go, or remove it" without:"cel,type,value,elementKey" conflict:"keep one of them"`
	Value      textField `json:"value" doc:"A fixed value." empty:"true" without:"type,regex,transform,missing,default" conflict:"remove it, because the value is fixed"`
	ElementKey boolField `json:"elementKey" doc:"true: the key of the element in its map; each must end in .*" without:"type,regex,transform,missing,default" conflict:"remove it"`
}

// amountForm has the fields that the value and the states of a metric share.
type amountForm struct {
	_ struct{} `narrows:"missing" doc:"How to treat an object without a value. Skip: it is in no series; Report: so, and statistics name it." enum:"Skip,Report" hint:"write Skip or Report, or default: with a value" default:"Skip"`
	partForm
}

type valueForm struct {
	_ struct{} `oneOf:"path|paths|label|annotation|cel" none:"the value has no source" hint:"add one of path, paths, label, annotation, cel" both:"keep one of them"`
	amountForm
}

type statesForm struct {
	_    struct{}  `oneOf:"path|paths|label|annotation|cel" none:"the states have no source" hint:"add one of path, paths, label, annotation, cel" both:"keep one of them"`
	Name textField `json:"name" doc:"The name of the label with the state." required:"true" hint:"add name: ..." pattern:"labelName" label:"the name of a label"`
	amountForm
	Values listField[textField] `json:"values" doc:"The states." required:"true" hint:"write values: [\"True\", \"False\", Unknown]" each:"a state"`
}

type referenceForm struct {
	formHeader
	Name textField  `json:"name" doc:"The name of the reference in queries." required:"true" hint:"add name: ..." pattern:"name" reserved:"owners" label:"the name of a reference"`
	Each pathForm   `json:"each" doc:"The path of elements with one target each. Other paths begin at the element, or at the object with a leading $."`
	To   targetForm `json:"to" doc:"The target." required:"true" hint:"add to: {group: ..., kind: ..., namePath: PATH}"`
	conditionForm
}

// targetForm is the target of a reference. A text beside a path is its default.
type targetForm struct {
	formHeader
	_              struct{}  `oneOf:"group|groupPath|apiVersionPath" none:"the target has no group" hint:"add group: with the API group (\"\" for the core group), or groupPath: or apiVersionPath: with a path"`
	_              struct{}  `oneOf:"resource|kind|kindPath" none:"the target has neither \"resource\" nor \"kind\"" hint:"add resource: with the plural name, kind: with the kind, or kindPath: with a path"`
	Group          textField `json:"group" doc:"The API group." empty:"true" pattern:"name" hint:"write the API group, or groupPath: with the path to it"`
	Resource       textField `json:"resource" doc:"The plural name of the target type." pattern:"name" hint:"write the plural name, such as issuers" without:"groupPath,apiVersionPath,kind,kindPath" conflict:"keep one of them; with a path to the group, write kind:"`
	GroupPath      pathForm  `json:"groupPath" doc:"The path to the API group." without:"apiVersionPath" conflict:"keep one of them"`
	APIVersionPath pathForm  `json:"apiVersionPath" doc:"The path to an apiVersion; its group is used."`
	Kind           textField `json:"kind" doc:"The kind." pattern:"name" hint:"write the kind, or kindPath: with the path to it"`
	KindPath       pathForm  `json:"kindPath" doc:"The path to the kind."`
	NamePath       pathForm  `json:"namePath" doc:"The path to the name." required:"true" hint:"add namePath: with the path to the name"`
	Namespace      textField `json:"namespace" doc:"The namespace. Default: the namespace of the object." pattern:"label" reserved:"own,none" hint:"write the name of a namespace, or namespacePath: with the path to it"`
	NamespacePath  pathForm  `json:"namespacePath" doc:"The path to the namespace."`
	Scope          textField `json:"scope" doc:"Cluster: the target has no namespace. Default: as the type, if it is cached." enum:"Cluster" hint:"write Cluster, or remove it" without:"namespace,namespacePath" conflict:"keep one of them"`
}

type matchForm struct {
	formHeader
	_        struct{}  `oneOf:"resource|kind" none:"the match has neither \"resource\" nor \"kind\"" hint:"add resource: with the plural name, or kind:" both:"keep resource, which is exact"`
	Group    textField `json:"group" doc:"The API group; empty for the core group. It may be a pattern; * matches any characters." required:"true" hint:"write group: example.com, or group: \"\" for the core group" empty:"true" pattern:"pattern"`
	Version  textField `json:"version" doc:"The version. Default: the server's preferred version at lookup time." hint:"write a version such as v1, or remove it for the server's preferred version" pattern:"name"`
	Resource textField `json:"resource" doc:"The plural name. It may be a pattern." hint:"write the plural name, such as certificates, or a pattern" pattern:"pattern"`
	Kind     textField `json:"kind" doc:"The kind." hint:"write a kind such as Certificate; patterns go with resource" pattern:"name"`
}

type namespacesForm struct {
	formHeader
	_       struct{}             `some:"add include or exclude, or remove it"`
	Include listField[textField] `json:"include" doc:"Names and patterns of namespaces. Default: all." pattern:"namespace" each:"a namespace" list:"name at least one namespace, such as prod or team-*, or remove it"`
	Exclude listField[textField] `json:"exclude" doc:"Names and patterns of excluded namespaces; takes precedence over include." pattern:"namespace" each:"a namespace" list:"name at least one namespace, such as prod or team-*, or remove it"`
}

type selectorsForm struct {
	formHeader
	Labels textField `json:"labels" doc:"A label selector." empty:"true" hint:"write a selector such as app=web,tier!=test"`
	Fields textField `json:"fields" doc:"A field selector." empty:"true" hint:"write a selector such as metadata.name=web"`
}

type indexForm struct {
	_    struct{}           `oneOf:"path|paths|label|annotation|cel|key" none:"the index has no values" hint:"add one of path, paths, label, annotation, cel, key" both:"keep one of them, or join several values by key"`
	Name textField          `json:"name" doc:"The name of the index in queries." required:"true" hint:"add name: ..., for lookups" pattern:"name" reserved:"namespace,name,age" label:"the name of an index"`
	Each pathForm           `json:"each" doc:"With key: the path of the elements to which the paths of the keys are relative." with:"key" conflict:"add key: with paths into the element, or write path: to the value itself"`
	Key  listField[keyForm] `json:"key" doc:"The parts of a composite value." without:"type,regex,transform,missing,default" conflict:"write it in the elements of key" each:"an element of key" list:"add elements such as {name: ns, path: .metadata.namespace}"`
	partForm
	Order textField `json:"order" doc:"Sorted: supports ranges and sorting." enum:"Hash,Sorted" default:"Hash"`
	conditionForm
}

type keyForm struct {
	_    struct{}  `oneOf:"path|paths|label|annotation|cel" none:"the element of key has no value" hint:"add one of path, paths, label, annotation, cel" both:"keep one of them"`
	Name textField `json:"name" doc:"The name of the part." required:"true" hint:"add name: ..." pattern:"name" label:"the name of a key"`
	partForm
}

// partForm has the fields that an index and an element of key share.
type partForm struct {
	formHeader
	Path       pathForm             `json:"path" doc:"The path to the values. With each, a path that begins with $ starts at the object."`
	Paths      listField[pathForm]  `json:"paths" doc:"Paths to the values; the first one with a value is used." each:"a path" list:"write the paths in the order of preference"`
	Label      textField            `json:"label" doc:"The name of a label." hint:"write the whole name, such as example.io/team"`
	Annotation textField            `json:"annotation" doc:"The name of an annotation." hint:"write the whole name, such as example.io/team"`
	CEL        textField            `json:"cel" doc:"A CEL expression over the object, as self, of a string, number or boolean, or a list of them." hint:"write an expression such as self.spec.name"`
	Type       textField            `json:"type" doc:"The type of the values. Default: compared as text." enum:"String,Int,Number,Bool,Quantity,Duration,Time,Date,IP,CIDR,SemVer"`
	Regex      regexForm            `json:"regex" doc:"A regular expression (RE2); its match becomes the value, before other transforms. Without a match, the value is missing."`
	Transform  listField[textField] `json:"transform" doc:"Transforms of the values, in order." enum:"Lower,Upper,Trim" each:"a transform" list:"write a list, such as [Lower]"`
	Missing    textField            `json:"missing" doc:"How to treat an object without a value. Skip: it is not in the index; Report: so, and statistics name it; AsNull: it is found under null." enum:"Skip,Report,AsNull" hint:"write Skip, Report or AsNull, or default: with a value" default:"Skip"`
	Default    textField            `json:"default" doc:"The value of objects without a value." empty:"true" hint:"write a text" without:"missing" conflict:"keep one of them"`
}

// conditionForm is a condition on objects in one of two languages.
type conditionForm struct {
	_       struct{}  `oneOf:"when|whenCEL" both:"keep one of them"`
	When    pathForm  `json:"when" doc:"A condition on the object, as @. Other objects are left out."`
	WhenCEL textField `json:"whenCEL" doc:"A condition in CEL on the object, as self, instead of when." hint:"write an expression such as self.spec.paused == true"`
}

// pathForm is the text of a path or a condition.
type pathForm struct{ rawField }

type regexForm struct {
	formHeader
	Match textField   `json:"match" doc:"The expression." required:"true" hint:"write {match: '^https?://([^/]+)', group: 1}"`
	Group numberField `json:"group" doc:"The number of the group that becomes the value; 0 is the whole match." min:"0" max:"1000" default:"0"`
}
