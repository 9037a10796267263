package experiment

import (
	"context"
	"fmt"
)

// The experiments.
const (
	// Sync fills a cache and measures the cost and the used memory.
	Sync = "sync"
	// SyncList is Sync with a list instead of a watch-list.
	SyncList = "sync-list"
	// UpdatesKey and UpdatesRead receive updates with a handler that takes the key or reads the object.
	UpdatesKey  = "updates-key"
	UpdatesRead = "updates-read"
	// BurstKey and BurstRead receive all updates of a synthetic API server at once. A real one makes one
	// update after the other, and a client that wakes up for each needs several times the CPU time.
	BurstKey  = "burst-key"
	BurstRead = "burst-read"
	// Reads measures all kinds of reads, and the addition of an index.
	Reads = "reads"
	// DumpJSON and DumpYAML run a command that prints all objects.
	DumpJSON = "dump-json"
	DumpYAML = "dump-yaml"
	// QueryCount runs a command that counts all objects.
	QueryCount = "query-count"
	// Answers runs commands with short answers.
	Answers = "answers"
	// Decode decodes JSON into unstructured objects.
	Decode = "decode"
	// Paths evaluates JSONPath expressions.
	Paths = "paths"
	// ManageUnstructured and ManageTyped run a manager that gets each object once in that form.
	ManageUnstructured = "manage-unstructured"
	ManageTyped        = "manage-typed"
	// Operator runs a manager like that of a scaffolded operator: its type, two owned types with as many
	// objects each, and updates that do not change the generation.
	Operator = "operator"
	// Queries runs queries on a cache and its reference graph.
	Queries = "queries"
	// Types fills caches of many types with few objects each.
	Types = "types"
	// Clusters fills the caches of ClusterTypes in each of many clusters. ClustersSparse is the same with few
	// objects.
	Clusters       = "clusters"
	ClustersSparse = "clusters-sparse"
	// Controllers runs a controller for each of many types, which are known only at run time.
	Controllers = "controllers"
	// Restart measures a process that resumes from persisted objects, and processes that start without them.
	Restart = "restart"
	// Scale fills, updates, relists, indexes and reads a cache with very many objects from a synthetic API
	// server.
	Scale = "scale"
	// LatencySlow and LatencyFast receive updates of a synthetic API server at a low or high rate.
	LatencySlow = "latency-slow"
	LatencyFast = "latency-fast"
	// Shard fills the cache of one of several replicas that share the objects.
	Shard = "shard"
)

// Subjects of experiments without caches.
const (
	// ClientGoLibrary is client-go and apimachinery.
	ClientGoLibrary = "stock"
	// Kubectl is the compared command.
	Kubectl = "kubectl"
	// Crdcache is crdcache.
	Crdcache = "crdcache"
	// CrdcacheQuery prints the result of a query. ServedDump and ServedQuery read from crdcache serve.
	CrdcacheQuery = "crdcache-query"
	ServedDump    = "crdcache-dump-served"
	ServedQuery   = "crdcache-query-served"
	// LiveCount counts the objects of the API server, and FileCount the same objects as JSON lines.
	LiveCount = "crdcache-count"
	FileCount = "crdcache-count-files"
	// VersionCommand prints the version. ServedIndex queries an index for one object, ServedFiles the same of
	// served files, and ServedTable prints a table of 1,000 objects; these read from crdcache serve.
	VersionCommand = "crdcache-version"
	ServedIndex    = "crdcache-index-served"
	ServedTable    = "crdcache-table-served"
	ServedFiles    = "crdcache-index-files"
	// ControllerRuntimeManager is a manager with controller-runtime's cache, CrdcacheManager with crdcache's,
	// CompressedManager with crdcache's compressed cache.
	ControllerRuntimeManager = "manager-stock"
	CrdcacheManager          = "manager-crdcache"
	CompressedManager        = "manager-crdcache-compressed"
	// BlockedManager is CrdcacheManager with a reconciler that never returns.
	BlockedManager = "manager-crdcache-blocked"
	// AdapterCache is crdcache's cache for controller-runtime with its default options.
	AdapterCache = "controller-runtime-crdcache"
	// Unchanged and Changed are crdcache in a process that resumes from disk, after no changes or
	// RestartChanges changes.
	Unchanged = "restart-unchanged"
	Changed   = "restart-changed"
	// CrdcachePack is crdcache's packing of JSON without decoding.
	CrdcachePack = "crdcache-pack"
	// OnlyReplica has all objects. ServerReplica is one of Replicas; its server sends only its objects.
	// ClientReplica receives all objects and drops the others.
	OnlyReplica   = "replica-of-all"
	ServerReplica = "replica-server"
	ClientReplica = "replica-client"
)

// experiments maps names to functions.
var experiments = map[string]Func{
	Sync:        syncCache,
	SyncList:    syncCache,
	UpdatesKey:  measureUpdates,
	UpdatesRead: measureUpdates,
	BurstKey:    measureUpdates,
	BurstRead:   measureUpdates,
	Reads:       readCache,
	DumpJSON:    command,
	DumpYAML:    command,
	QueryCount:  command,
	Answers:     command,
	Decode:      decodeObjects,
	Paths:       evaluatePaths,
	Queries:     measureQueries,
	Types:       measureTypes,
	Clusters:    measureTypes,
	Restart:     restart,
	Scale:       scaleCache,
	LatencySlow: measureUpdates,
	LatencyFast: measureUpdates,
	Shard:       fillReplica,
	Controllers: measureControllers,

	ClustersSparse:     measureTypes,
	ManageUnstructured: manage,
	ManageTyped:        manage,
	Operator:           manage,
}

// Run runs a task in a child process.
func Run(ctx context.Context, task Task, ready func() error) (_ Outcome, err error) {
	run, ok := experiments[task.Experiment]
	if !ok {
		return Outcome{}, fmt.Errorf("there is no experiment %q", task.Experiment)
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	return run(ctx, task, ready)
}

// failure is the panic of check.
type failure struct{ error }

// check ends the experiment if there is an error. Only the goroutine of Run calls it.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}
