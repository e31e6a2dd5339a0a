#!/bin/sh
# Writes the pages and streams in this folder anew, each in both forms, from the API server of
# `cargo xtask controlplane up`. It should hold nothing else, and loses its namespace `shop`.
set -eu
cd "$(dirname "$0")"
kubectl() { cargo --quiet xtask controlplane kubectl "$@"; }

kubectl delete namespace shop --ignore-not-found
kubectl apply -f objects.yaml
ingress='[{"ip":"203.0.113.1","ipMode":"VIP"},{"ip":"203.0.113.2","ipMode":"Proxy"},{"hostname":"lb.example.com"}]'
kubectl patch service everything -n shop --subresource=status --type=merge \
    -p "{\"status\":{\"loadBalancer\":{\"ingress\":$ingress}}}"

config=$(cargo --quiet xtask controlplane kubeconfig)
credentials=$(mktemp -d)
trap 'rm -r "$credentials"' EXIT
for name in certificate-authority client-certificate client-key; do
    sed -n "s/ *$name-data: //p" "$config" | base64 -d >"$credentials/$name"
done
server=$(sed -n 's/ *server: //p' "$config")

get() {
    curl -sS --cacert "$credentials/certificate-authority" --cert "$credentials/client-certificate" \
        --key "$credentials/client-key" -H "Accept: application/$1" "$server$2"
}
shop=/api/v1/namespaces/shop
list="watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
for accept in json vnd.kubernetes.protobuf; do
    form=${accept##*.}
    get $accept /api/v1/nodes >nodes.$form
    get $accept "$shop/services?limit=2" >services.$form
    get $accept /apis/discovery.k8s.io/v1/namespaces/shop/endpointslices >slices.$form
    get $accept /apis/networking.k8s.io/v1/servicecidrs >cidrs.$form
    get "$accept;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" /api/v1/namespaces >namespaces.$form
    get $accept $shop/services/nobody >status.$form
done
for accept in json vnd.kubernetes.protobuf; do
    form=${accept##*.}
    get $accept "$shop/services?$list&fieldSelector=metadata.name=plain&timeoutSeconds=4" >stream.$form &
done
sleep 1
kubectl label service plain -n shop a=b
kubectl delete service plain -n shop
wait
