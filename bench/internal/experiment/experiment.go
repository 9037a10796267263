package experiment

import (
	"context"
	"fmt"
)

// The experiments.
const (
	// Sync fills a cache, and measures what that costs and what it keeps.
	Sync = "sync"
	// SyncList is Sync with a list in place of a watch-list, as with servers that have none.
	SyncList = "sync-list"
	// UpdatesKey and UpdatesRead follow updates with a handler that takes the key, or reads the object.
	UpdatesKey  = "updates-key"
	UpdatesRead = "updates-read"
	// BurstKey and BurstRead do that with updates that arrive all at once.
	BurstKey  = "burst-key"
	BurstRead = "burst-read"
	// Reads reads a cache in all ways, and adds an index to it.
	Reads = "reads"
	// DumpJSON and DumpYAML run a command that prints all objects.
	DumpJSON = "dump-json"
	DumpYAML = "dump-yaml"
	// Decode makes unstructured objects of JSON.
	Decode = "decode"
	// Paths evaluates JSONPath expressions.
	Paths = "paths"
	// ManageUnstructured and ManageTyped run a manager that reconciles each object with one Get of that form.
	ManageUnstructured = "manage-unstructured"
	ManageTyped        = "manage-typed"
	// Queries asks a cache of generated objects, and a graph of their references.
	Queries = "queries"
	// Types keeps caches of many types with few objects each.
	Types = "types"
	// Restart ends a process and begins the next, beside processes that begin with nothing.
	Restart = "restart"
	// Scale fills, updates, lists again, indexes and reads a cache of very many objects, from a synthetic
	// API server.
	Scale = "scale"
	// LatencySlow and LatencyFast follow updates of a synthetic API server, few in a second or many.
	LatencySlow = "latency-slow"
	LatencyFast = "latency-fast"
	// Shard fills the cache of one of several replicas that share the objects.
	Shard = "shard"
)

// The subjects of experiments that are not about caches.
const (
	// Stock is what client-go and apimachinery have.
	Stock = "stock"
	// Kubectl is the command to compare with.
	Kubectl = "kubectl"
	// Ours is what crdcache has.
	Ours = "crdcache"
	// OursQuery prints the result of a query. ServedDump and ServedQuery print what a server of types holds.
	OursQuery   = "crdcache-query"
	ServedDump  = "crdcache-dump-served"
	ServedQuery = "crdcache-query-served"
	// StockManager is a manager with the cache of controller-runtime, and OursManager one with that of
	// crdcache, which CompressedManager has compress what it keeps.
	StockManager      = "manager-stock"
	OursManager       = "manager-crdcache"
	CompressedManager = "manager-crdcache-compressed"
	// Unchanged and Changed are crdcache, in a process that goes on from what an earlier one kept on the
	// disk: nothing has changed meanwhile, or RestartChanges objects have.
	Unchanged = "restart-unchanged"
	Changed   = "restart-changed"
	// OursPacked is how crdcache keeps JSON without decoding it.
	OursPacked = "crdcache-pack"
	// OnlyReplica is a replica that has all objects. ServerReplica is one of Replicas that share them, from
	// a server that sends it no others, and ClientReplica one that receives all and keeps its own.
	OnlyReplica   = "replica-of-all"
	ServerReplica = "replica-server"
	ClientReplica = "replica-client"
)

// experiments has what each does.
var experiments = map[string]Func{
	Sync:        syncCache,
	SyncList:    syncCache,
	UpdatesKey:  follow,
	UpdatesRead: follow,
	BurstKey:    follow,
	BurstRead:   follow,
	Reads:       readCache,
	DumpJSON:    command,
	DumpYAML:    command,
	Decode:      decodeObjects,
	Paths:       evaluatePaths,
	Queries:     askQueries,
	Types:       holdTypes,
	Restart:     restart,
	Scale:       scaleCache,
	LatencySlow: follow,
	LatencyFast: follow,
	Shard:       shareObjects,

	ManageUnstructured: manage,
	ManageTyped:        manage,
}

// Run does a task. It is what a child process calls.
func Run(ctx context.Context, task Task, ready func() error) (Outcome, error) {
	run, ok := experiments[task.Experiment]
	if !ok {
		return Outcome{}, fmt.Errorf("there is no experiment %q", task.Experiment)
	}
	return run(ctx, task, ready)
}
