# Changes the cluster of the kubeconfig ADMIN with kubectl and Helm. Daemonsets and releases have no objects then.
# Writes KUBECONFIG for a user who may not read secrets, roles and routes.
set -e
limited=$KUBECONFIG
export KUBECONFIG=$ADMIN
cp "$ADMIN" "$limited"
kubectl create serviceaccount limited
kubectl apply -f "$TESTDATA/limited.yaml"
token=$(kubectl create token limited)
kubectl --kubeconfig "$limited" config set-credentials limited --token "$token"
kubectl --kubeconfig "$limited" config set-context --current --user limited
until kubectl --kubeconfig "$limited" auth can-i list workloads.demo.crdcache.dev -A; do sleep 0.1; done
kubectl delete daemonsets,releases --all -A
kubectl apply -k "$TESTDATA/kustomize"
helm install app "$TESTDATA/chart"
kubectl create namespace audited
kubectl config set-context --current --namespace audited
kubectl create configmap a
kubectl create configmap b
kubectl create configmap dry --dry-run=server
kubectl run a --image a
kubectl run b --image b
kubectl get pods,configmaps
kubectl get services -o json
kubectl delete configmap b
kubectl delete pod b
kubectl label pod a x=y
kubectl config set-context --current --namespace default
