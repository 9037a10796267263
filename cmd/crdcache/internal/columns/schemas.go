package columns

import (
	"cmp"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// documentedKinds are the built-in kinds that kubectl explain can describe.
var documentedKinds = map[schema.GroupVersion][]any{
	corev1.SchemeGroupVersion: {corev1.Pod{}, corev1.Service{}, corev1.ConfigMap{}, corev1.Secret{},
		corev1.Node{}, corev1.Namespace{}, corev1.Event{}, corev1.Endpoints{}, corev1.ServiceAccount{},
		corev1.PersistentVolume{}, corev1.PersistentVolumeClaim{}, corev1.ReplicationController{},
		corev1.ResourceQuota{}, corev1.LimitRange{}},
	appsv1.SchemeGroupVersion: {appsv1.Deployment{}, appsv1.ReplicaSet{}, appsv1.StatefulSet{},
		appsv1.DaemonSet{}, appsv1.ControllerRevision{}},
	batchv1.SchemeGroupVersion:       {batchv1.Job{}, batchv1.CronJob{}},
	autoscalingv2.SchemeGroupVersion: {autoscalingv2.HorizontalPodAutoscaler{}},
	networkingv1.SchemeGroupVersion: {networkingv1.Ingress{}, networkingv1.IngressClass{},
		networkingv1.NetworkPolicy{}},
	policyv1.SchemeGroupVersion: {policyv1.PodDisruptionBudget{}},
	rbacv1.SchemeGroupVersion: {rbacv1.Role{}, rbacv1.RoleBinding{}, rbacv1.ClusterRole{},
		rbacv1.ClusterRoleBinding{}},
	storagev1.SchemeGroupVersion: {storagev1.StorageClass{}, storagev1.CSINode{}, storagev1.CSIDriver{},
		storagev1.VolumeAttachment{}},
}

// wholeTypes are the schemas of types whose JSON is not that of their fields.
var wholeTypes = map[reflect.Type]map[string]any{
	reflect.TypeFor[metav1.Time]():          {"type": "string", "format": "date-time"},
	reflect.TypeFor[metav1.MicroTime]():     {"type": "string", "format": "date-time"},
	reflect.TypeFor[resource.Quantity]():    textOrNumber,
	reflect.TypeFor[intstr.IntOrString]():   textOrNumber,
	reflect.TypeFor[runtime.RawExtension](): {"type": "object"},
	reflect.TypeFor[metav1.FieldsV1]():      {"type": "object"},
}

var textOrNumber = map[string]any{"oneOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "number"}}}

// builtinSchemas implements filesource.Schemas with the documentation of Kubernetes' Go types.
func builtinSchemas(gv schema.GroupVersion) (kinds, others map[string]any) {
	kinds, others = map[string]any{}, map[string]any{}
	for _, object := range documentedKinds[gv] {
		t := reflect.TypeOf(object)
		kinds[t.Name()] = structSchema(t, others)
	}
	return kinds, others
}

// structSchema returns the schema of a struct. It adds those of other structs to others.
func structSchema(t reflect.Type, others map[string]any) map[string]any {
	if whole, ok := wholeTypes[t]; ok {
		return whole
	}
	properties := map[string]any{}
	required := addFields(t, properties, others)
	return map[string]any{"type": "object", "description": docsOf(t)[""], "properties": properties,
		"required": required}
}

// addFields adds the fields of a struct to properties, and returns the names of those that are required.
func addFields(t reflect.Type, properties, others map[string]any) (required []string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			required = append(required, addFields(f.Type, properties, others)...)
			continue
		case f.Type.Kind() != reflect.Pointer && !strings.Contains(options, "omitempty"):
			required = append(required, name)
		}
		property := valueSchema(f.Type, others)
		property["description"] = docsOf(t)[name]
		properties[name] = property
	}
	return required
}

// docsOf returns the documentation of the fields of a struct, and with "" its own.
func docsOf(t reflect.Type) map[string]string {
	if d, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return d.SwaggerDoc()
	}
	return nil
}

// valueSchema returns a new schema of a type. It adds the schemas of structs to others.
func valueSchema(t reflect.Type, others map[string]any) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return valueSchema(t.Elem(), others)
	case reflect.Struct:
		name := strings.ReplaceAll(t.PkgPath(), "/", ".") + "." + t.Name()
		if others[name] == nil {
			others[name] = map[string]any{} // ends the recursion of types that contain themselves
			others[name] = structSchema(t, others)
		}
		return map[string]any{"allOf": []any{map[string]any{"$ref": "#/components/schemas/" + name}}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "format": "byte"}
		}
		return map[string]any{"type": "array", "items": valueSchema(t.Elem(), others)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": valueSchema(t.Elem(), others)}
	}
	name := map[reflect.Kind]string{reflect.Bool: "boolean", reflect.String: "string"}[t.Kind()]
	return map[string]any{"type": cmp.Or(name, "integer")}
}
