package dynamicinformer

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Persistence keeps what informers hold beyond the end of the process. Implementations must be safe for concurrent use, and
// may fail at any time: then the content is not kept until it is tried again, which Informer.Persistence tells, and the
// informer goes on.
type Persistence interface {
	// View claims what is kept of a view of a type, which key identifies, until it is closed. It fails where somebody
	// else has claimed it.
	View(key string) (PersistedView, error)
}

// PersistedView is what is kept of one view of a type: a consistent content with its Checkpoint, or nothing. One method is
// called at a time.
type PersistedView interface {
	// Checkpoint returns that of the content, and false if there is none.
	Checkpoint() (Checkpoint, bool, error)
	// Load calls object with the JSON of each object, good until object returns, and returns the first error, its own or
	// that of object. With an error, what was told counts for nothing.
	Load(object func(json []byte) error) error
	// Save calls write, and has what it writes take effect at once with the checkpoint, or not at all. whole says that
	// nothing of what was kept before stays; then objects come in the order of their keys, each once. After it has failed,
	// the next Save is whole. So is the first one, unless Load has succeeded.
	Save(at Checkpoint, whole bool, write func(PersistenceWriter) error) error
	// Close gives the view up, and keeps what is kept.
	Close() error
}

// PersistedBlocks is a PersistedView that keeps a whole content in blocks of some dozen objects each, so that the next process
// need not read everything to have it: the bodies of objects are read with the first of a block that somebody asks for. What
// changes is kept beside the blocks, until the next whole content. Save and Load are not called then.
type PersistedBlocks interface {
	PersistedView
	// SaveBlocks is Save, whose whole contents come in blocks, and what blocks cannot take after them.
	SaveBlocks(at Checkpoint, whole bool, write func(BlockWriter) error) error
	// LoadBlocks is Load. It calls block for each block: head is good until block returns, and bodies, which may be called at any time
	// later and at the same time as anything else, returns the bodies; size is how many bytes it keeps in memory. Before
	// that, it calls changed for each change since, in their order; json is nil for what was deleted, and good until changed
	// returns.
	LoadBlocks(changed func(key string, json []byte) error, block func(head []byte, bodies func() ([]byte, error), size int) error) error
	// Full says that the next content is better saved whole.
	Full() bool
}

// BlockWriter is a PersistenceWriter that takes blocks.
type BlockWriter interface {
	PersistenceWriter
	// PutBlock keeps a block, which it must not hold on to. head and bodies are different each time, and bodies is some
	// dozen KB.
	PutBlock(head, bodies []byte) error
}

// PersistenceWriter takes changes of a PersistedView.
type PersistenceWriter interface {
	// Put keeps the JSON of an object, which it must not hold on to, in place of what is kept for the key.
	Put(key string, json []byte) error
	// Delete keeps nothing for the key.
	Delete(key string) error
}

// Checkpoint says what a content is of.
type Checkpoint struct {
	// ResourceVersion is what a watch goes on from. It is empty where namespaces are read one by one: Namespaces has that of each,
	// as "a=12,b=7", in the order of their names.
	ResourceVersion string `json:"resourceVersion"`
	Namespaces      string `json:"namespaces,omitempty"`
	// Version is that of the API which the objects are in, UID that of the CRD, where it is known.
	Version string    `json:"version"`
	UID     types.UID `json:"uid,omitempty"`
	// Cluster is the UID of the namespace kube-system, empty where that may not be read; Endpoint identifies the server by
	// address and certificate authority.
	Cluster  types.UID `json:"cluster,omitempty"`
	Endpoint string    `json:"endpoint,omitempty"`
	// Objects counts the objects.
	Objects int `json:"objects"`
	// Time is when the content was saved.
	Time time.Time `json:"time"`
}

// PersistenceStatus says how what an informer holds is kept.
type PersistenceStatus struct {
	// Kept says whether it is to be kept at all; Why says for a person why not, and Err is what went wrong last, until
	// something is saved: the content is not kept then, but will be when it can be.
	Kept bool
	Why  string
	Err  error
	// Saves and Failures count how often something was saved, and how often something went wrong. What fails is tried again
	// after a pause of twice Options.PersistenceInterval, which grows to five minutes.
	Saves, Failures int
	// Resumed says that the informer has gone on from what an earlier process kept, without listing everything.
	Resumed bool
	// Checkpoint is what is kept now, as far as this process knows; zero for nothing.
	Checkpoint Checkpoint
}

// Persistence tells how what the informer holds is kept (see Options.Persistence).
func (i *Informer) Persistence() PersistenceStatus { return i.keeper.report() }
