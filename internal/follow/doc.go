// Package follow has an informer follow its type: it begins a generation whenever the type is there to be followed, reads
// it in the namespaces that are wanted, from one version to the next, and ends the generation when the type is gone. It
// decides; the requests are sent, the objects kept, and the status told by others, whom it knows by narrow interfaces.
package follow
