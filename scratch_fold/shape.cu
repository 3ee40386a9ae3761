// Candidate shapes of float sums on a GPU, beside unconstrained trees. Bits checked against a host reference.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cmath>
#include <algorithm>
#include <cstring>
#include <functional>
#include <cuda_runtime.h>
#define CK(x) do{cudaError_t err_=(x);if(err_){printf("%s: %s\n",#x,cudaGetErrorString(err_));exit(1);}}while(0)
typedef float4 F4;
__device__ __forceinline__ float shx(float x,int m){return __shfl_xor_sync(~0u,x,m);}
__device__ __forceinline__ F4 add(F4 a,F4 b){return make_float4(a.x+b.x,a.y+b.y,a.z+b.z,a.w+b.w);}

// ---- fold of a half-warp's float4 (a round = 16 threads x 4): 64 -> 16 lanes, one a thread.
// accumulator a = 4*t+c; copies are bits 4,5 of a = bits 2,3 of t. (c0+c1)+(c2+c3): bit 4 first.
__device__ __forceinline__ float copies(F4 v,int t){
  // xor 4 (bit 2 of t): low half keeps x,y; high keeps z,w
  bool h=t&4;
  float a=h?v.z:v.x,b=h?v.w:v.y,p=h?v.x:v.z,q=h?v.y:v.w;
  float r=shx(p,4),s=shx(q,4);
  // the addition is commutative, so the order of the two does not matter
  a=a+r;b=b+s;
  bool g=t&8;
  float k=g?b:a,m=g?a:b;
  return k+shx(m,8);
}
// which lane (of 16) a thread then holds: 4*(t&3) + component; component = 2*(bit2)+(bit3)
// then lanes fold: bit 3 of lane = bit 1 of t, bit 2 = bit 0 of t, bit 1 = component bit 1 = t bit 2, bit 0 = t bit 3
__device__ __forceinline__ float lanes(float x){
  x+=shx(x,2);x+=shx(x,1);x+=shx(x,4);x+=shx(x,8);return x;
}
// ---- one value a thread group: T threads a row, sum over the row. SHAPE: 0 free, 1 frozen candidate
template<int T,int V,int SHAPE> struct Row{
  // element offset (in float4) of vector v of thread t
  static __device__ __forceinline__ int at(int t,int v){
    if(SHAPE==0) return v*T+t;
    int h=t/16; // half-warp takes V rounds, V/4 runs
    return (h*V+v)*16+(t&15);
  }
  static __device__ __forceinline__ float sum(const F4*x,int t,float*sh){ // sh: per row area
    float r;
    if constexpr(SHAPE==0){
      F4 s=x[0];
      if constexpr(V>=2){ F4 y[V];
#pragma unroll
        for(int v=0;v<V;v++)y[v]=x[v];
#pragma unroll
        for(int d=1;d<V;d*=2)
#pragma unroll
          for(int v=0;v+d<V;v+=2*d)y[v]=add(y[v],y[v+d]);
        s=y[0];}
      r=(s.x+s.y)+(s.z+s.w);
#pragma unroll
      for(int m=1;m<(T<32?T:32);m*=2)r+=shx(r,m);
      if constexpr(T>32){
        constexpr int W=T/32;
        if((t&31)==0)sh[t/32]=r;
        __syncthreads();
        float y[W];
#pragma unroll
        for(int w=0;w<W;w++)y[w]=sh[w];
#pragma unroll
        for(int d=1;d<W;d*=2)
#pragma unroll
          for(int w=0;w+d<W;w+=2*d)y[w]+=y[w+d];
        r=y[0];
      }
      return r;
    }else{
      constexpr int R=V<4?1:V/4, L=V<4?V:4;
      float y[R];
#pragma unroll
      for(int k=0;k<R;k++){
        F4 s=x[4*k];
#pragma unroll
        for(int v=1;v<L;v++)s=add(s,x[4*k+v]);
        y[k]=copies(s,t);
      }
#pragma unroll
      for(int d=1;d<R;d*=2)
#pragma unroll
        for(int k=0;k+d<R;k+=2*d)y[k]+=y[k+d];
      r=y[0];
      if(T>=32)r+=shx(r,16);
      if constexpr(T>32){
        constexpr int W=T/32;
        if((t&31)<16)sh[(t/32)*16+(t&15)]=r;
        __syncthreads();
        constexpr int P=W<2?1:W/2; // each half-warp takes half of the warps' values
        float z[P];int b=(t&16)?P:0;
#pragma unroll
        for(int w=0;w<P;w++)z[w]=sh[(b+w)*16+(t&15)];
#pragma unroll
        for(int d=1;d<P;d*=2)
#pragma unroll
          for(int w=0;w+d<P;w+=2*d)z[w]+=z[w+d];
        r=z[0]+shx(z[0],16);
      }
      return lanes(r);
    }
  }
  static __device__ __forceinline__ float top(const F4*x,int t,float*sh){
    float r=-INFINITY;
#pragma unroll
    for(int v=0;v<V;v++)r=fmaxf(r,fmaxf(fmaxf(x[v].x,x[v].y),fmaxf(x[v].z,x[v].w)));
#pragma unroll
    for(int m=1;m<(T<32?T:32);m*=2)r=fmaxf(r,shx(r,m));
    if constexpr(T>32){ if((t&31)==0)sh[t/32]=r; __syncthreads();
#pragma unroll
      for(int w=0;w<T/32;w++)r=fmaxf(r,sh[w]); }
    return r;
  }
};
template<int T,int V,int SHAPE,int SOFT,int B>
__global__ void __launch_bounds__(B) rows(const F4*__restrict__ in,float*__restrict__ out,int n){
  __shared__ float sh[2][(B/T)*((T+1)/2>8?(T+1)/2:8)+32];
  int t=threadIdx.x%T,g=threadIdx.x/T;size_t row=(size_t)blockIdx.x*(B/T)+g;
  typedef Row<T,V,SHAPE> R;
  const F4*p=in+row*(T*V);
  F4 x[V];
#pragma unroll
  for(int v=0;v<V;v++)x[v]=p[R::at(t,v)];
  int area=g*(T/2>8?T/2:8);
  if(SOFT){
    float m=R::top(x,t,sh[0]+area);
#pragma unroll
    for(int v=0;v<V;v++){x[v].x=__expf(x[v].x-m);x[v].y=__expf(x[v].y-m);x[v].z=__expf(x[v].z-m);x[v].w=__expf(x[v].w-m);}
  }
  float s=R::sum(x,t,sh[1]+area);
  if(SOFT){
    float q=1.0f/s;F4*o=(F4*)out+row*(T*V);
#pragma unroll
    for(int v=0;v<V;v++){x[v].x*=q;x[v].y*=q;x[v].z*=q;x[v].w*=q;o[R::at(t,v)]=x[v];}
  }else if(t==0)out[row]=s;
}
// ---- whole sums: block's groups of aligned elements; partials by position; the last block folds them
__device__ unsigned counter;
template<int T,int V,int SHAPE> // T threads, V float4 a thread a group
__global__ void __launch_bounds__(T) whole(const F4*__restrict__ in,float*part,float*out,int n4,int groups){
  __shared__ float sh[2][T/2];__shared__ bool last;
  int t=threadIdx.x;typedef Row<T,V,SHAPE> R;int turn=0;
  for(int g=blockIdx.x;g<groups;g+=gridDim.x,turn^=1){
    F4 x[V];
#pragma unroll
    for(int v=0;v<V;v++){int a=g*(T*V)+R::at(t,v);x[v]=a<n4?in[a]:make_float4(0,0,0,0);}
    if constexpr(SHAPE==0){float s=R::sum(x,t,sh[turn]);if(t==0)part[g]=s;}
    else{ // sums of lanes: as R::sum without the last fold
      constexpr int Q=V/4;float y[Q];
#pragma unroll
      for(int k=0;k<Q;k++){F4 s=x[4*k];
#pragma unroll
        for(int v=1;v<4;v++)s=add(s,x[4*k+v]);
        y[k]=copies(s,t);}
#pragma unroll
      for(int d=1;d<Q;d*=2)
#pragma unroll
        for(int k=0;k+d<Q;k+=2*d)y[k]+=y[k+d];
      float r=y[0]+shx(y[0],16);
      constexpr int W=T/32,P=W/2;
      if((t&31)<16)sh[turn][(t/32)*16+(t&15)]=r;
      __syncthreads();
      if(t<32){float z[P];int b=(t&16)?P:0;
#pragma unroll
        for(int w=0;w<P;w++)z[w]=sh[turn][(b+w)*16+(t&15)];
#pragma unroll
        for(int d=1;d<P;d*=2)
#pragma unroll
          for(int w=0;w+d<P;w+=2*d)z[w]+=z[w+d];
        r=z[0]+shx(z[0],16);
        if(t<16)part[g*16+t]=r;}
    }
  }
  __threadfence();__syncthreads();
  if(t==0)last=atomicInc(&counter,gridDim.x-1)==gridDim.x-1;
  __syncthreads();
  if(!last)return;
  __threadfence();
  __shared__ float fin[T];
  // partials, zero beyond the last: a balanced tree by position. Free: T at a time, by whoever.
  if constexpr(SHAPE==0){
    float s=0;for(int g=t;g<groups;g+=T)s+=__ldcg(part+g);
    fin[t]=s;__syncthreads();
    for(int d=T/2;d;d/=2){if(t<d)fin[t]+=fin[t+d];__syncthreads();}
    if(t==0)*out=fin[0];
  }else{
    // aligned runs of `per` groups a team of 16 threads, per a power of two
    constexpr int teams=T/16;int per=1;while(per*teams<groups)per*=2;
    int team=t/16,l=t&15;
    float w[16];int cnt=0;float r=0; // binary counter over per groups
    if(per<=16){
      float y[16];
#pragma unroll
      for(int k=0;k<16;k++){int g=team*per+k;y[k]=k<per&&g<groups?__ldcg(part+g*16+l):0.f;}
#pragma unroll
      for(int d=1;d<16;d*=2)
#pragma unroll
        for(int k=0;k+d<16;k+=2*d)y[k]+=y[k+d];
      r=y[0];
    }else{
      for(int k=0;k<per;k++){int g=team*per+k;float v=g<groups?__ldcg(part+g*16+l):0.f;
        int p=0;for(unsigned c=k;c&1;c>>=1)v=w[p++]+v;w[p]=v;}
      int p=0;while((1<<p)<per)p++;r=w[p];
    }
    (void)cnt;
    fin[t]=r;__syncthreads();
    for(int d=1;d<teams;d*=2){ float a=0;bool on=team%(2*d)==0&&team+d<teams; if(on)a=fin[t]+fin[t+d*16];__syncthreads();if(on)fin[t]=a;__syncthreads();}
    if(t<32){ // threads hold lanes in the permuted order
      float x=lanes(fin[t&15]);if(t==0)*out=x;}
  }
}
// ---- columns: X columns x T threads
template<int X,int T,int SHAPE>
__global__ void __launch_bounds__(X*T) columns(const float*__restrict__ in,float*__restrict__ out,int nrows,int ncols){
  int c=threadIdx.x%X,t=threadIdx.x/X;const float*p=in+blockIdx.x*X+c;
  __shared__ float sh[T][X+1];
  float r=0;
  if constexpr(SHAPE==0){
    float a=0,b=0,d=0,e=0;
    for(int i=t;i<nrows;i+=4*T){a+=p[(size_t)i*ncols];b+=p[(size_t)(i+T)*ncols];d+=p[(size_t)(i+2*T)*ncols];e+=p[(size_t)(i+3*T)*ncols];}
    r=(a+b)+(d+e);
  }else if constexpr(SHAPE==1){
    // each thread an aligned stretch of rows, 32 at a time (8 runs of 4), then a counter in registers (static places)
    int per=nrows/T;const float*q=p+(size_t)t*per*ncols;
    float w[8];
#pragma unroll
    for(int k=0;k<8;k++)w[k]=0;
    for(int i=0,g=0;i<per;i+=16,g++){
      float y[4];
#pragma unroll
      for(int k=0;k<4;k++){float s=q[(size_t)(i+4*k)*ncols];
#pragma unroll
        for(int j=1;j<4;j++)s+=q[(size_t)(i+4*k+j)*ncols];
        y[k]=s;}
      float v=(y[0]+y[1])+(y[2]+y[3]);
#pragma unroll
      for(int k=0;k<8;k++){ if(!(g>>k&1)){w[k]=v;break;} v=w[k]+v; }
    }
    int groups=per/16,p2=0;while((1<<p2)<groups)p2++;
#pragma unroll
    for(int k=0;k<8;k++)if(k==p2)r=w[k];
  }else{
    // the threads of a block take neighbouring groups of 16 rows: T*16 rows a turn, folded over threads each turn
    float w[8];
#pragma unroll
    for(int k=0;k<8;k++)w[k]=0;
    for(int base=0,g=0;base<nrows;base+=16*T,g++){
      const float*q=p+(size_t)(base+t*16)*ncols;float y[4];
#pragma unroll
      for(int k=0;k<4;k++){float s=q[(size_t)(4*k)*ncols];
#pragma unroll
        for(int j=1;j<4;j++)s+=q[(size_t)(4*k+j)*ncols];
        y[k]=s;}
      float v=(y[0]+y[1])+(y[2]+y[3]);
      sh[t][c]=v;__syncthreads();
      for(int d=1;d<T;d*=2){bool on=t%(2*d)==0;float a=on?sh[t][c]+sh[t+d][c]:0;__syncthreads();if(on)sh[t][c]=a;__syncthreads();}
      v=sh[0][c];
#pragma unroll
      for(int k=0;k<8;k++){ if(!(g>>k&1)){w[k]=v;break;} v=w[k]+v; }
      r=v;
    }
    if(t==0)out[blockIdx.x*X+c]=r;
    return;
  }
  sh[t][c]=r;__syncthreads();
  for(int d=1;d<T;d*=2){ if(t%(2*d)==0)sh[t][c]+=sh[t+d][c];__syncthreads();}
  if(t==0)out[blockIdx.x*X+c]=sh[0][c];
}
// ---- host reference of the shape
static float treeof(std::vector<float> v){ // balanced by position, absent skipped
  if(v.empty())return 0;
  while(v.size()>1){std::vector<float> w;for(size_t i=0;i<v.size();i+=2)w.push_back(i+1<v.size()?v[i]+v[i+1]:v[i]);v.swap(w);}
  return v[0];}
static float along(const float*x,long n){
  float l[16];
  for(int lane=0;lane<16;lane++){std::vector<float> runs;
    for(long b=0;b<n;b+=256){std::vector<float> c;
      for(int k=0;k<4;k++){bool any=false;float s=0;for(int r=0;r<4;r++){long i=b+64*r+16*k+lane;if(i<n){s=any?s+x[i]:x[i];any=true;}}if(any)c.push_back(s);}
      runs.push_back(c.empty()?0.f:treeof(c));}
    l[lane]=treeof(runs);}
  for(int d=8;d;d/=2)for(int i=0;i<d;i++)l[i]+=l[i+d];
  return l[0];}
static float down(const float*x,long n,long stride){std::vector<float> r;
  for(long b=0;b<n;b+=4){float s=x[b*stride];for(long i=b+1;i<std::min(n,b+4);i++)s+=x[i*stride];r.push_back(s);}return treeof(r);}

static double timed(std::function<void(cudaStream_t)> f){
  cudaStream_t s;CK(cudaStreamCreate(&s));
  const int N=100;cudaGraph_t g;cudaGraphExec_t e;
  CK(cudaStreamBeginCapture(s,cudaStreamCaptureModeRelaxed));for(int i=0;i<N;i++)f(s);CK(cudaStreamEndCapture(s,&g));
  CK(cudaGraphInstantiate(&e,g,0));cudaEvent_t a,b;cudaEventCreate(&a);cudaEventCreate(&b);
  float best=1e9;
  for(int i=0;i<12;i++){cudaEventRecord(a,s);cudaGraphLaunch(e,s);cudaEventRecord(b,s);CK(cudaStreamSynchronize(s));float ms;cudaEventElapsedTime(&ms,a,b);if(i>1)best=std::min(best,ms);}
  cudaGraphExecDestroy(e);cudaGraphDestroy(g);cudaStreamDestroy(s);
  return best*1e3/N;}
float*in,*out,*part;std::vector<float> host;
template<int T,int V,int SHAPE,int SOFT,int B> void row_case(int rows_){
  int n=T*V*4;
  auto f=[=](cudaStream_t s){rows<T,V,SHAPE,SOFT,B><<<rows_*T/B,B,0,s>>>((F4*)in,out,n);};
  CK(cudaMemset(out,0,1<<20));
  double us=timed(f);CK(cudaGetLastError());
  int bad=-1;
  if(SHAPE==1&&!SOFT){std::vector<float> got(rows_);CK(cudaMemcpy(got.data(),out,rows_*4,cudaMemcpyDeviceToHost));bad=0;
    for(int r=0;r<rows_;r+=(rows_/64+1)){float w=along(&host[(size_t)r*n],n);if(memcmp(&w,&got[r],4))bad++;}}
  printf("%-8s rows %6dx%-6d T=%4d V=%2d block %4d %-6s %8.2f us %s\n",SOFT?"softmax":"sum",rows_,n,T,V,B,SHAPE?"shape":"free",us,bad<0?"":bad?"WRONG BITS":"bits ok");
  fflush(stdout);}
template<int T,int V,int B> void row_both(int r){row_case<T,V,0,0,B>(r);row_case<T,V,1,0,B>(r);row_case<T,V,0,1,B>(r);row_case<T,V,1,1,B>(r);}
template<int T,int V,int SHAPE> void whole_case(long n,int blocks){
  int groups=(n+T*V*4-1)/(T*V*4);if(blocks==0||blocks>groups)blocks=groups;
  auto f=[=](cudaStream_t s){whole<T,V,SHAPE><<<blocks,T,0,s>>>((F4*)in,part,out,n/4,groups);};
  double us=timed(f);CK(cudaGetLastError());float got;CK(cudaMemcpy(&got,out,4,cudaMemcpyDeviceToHost));
  const char*note="";if(SHAPE){float w=along(host.data(),n);note=memcmp(&w,&got,4)?"WRONG BITS":"bits ok";}
  printf("whole    %9ld T=%4d V=%2d blocks %5d of groups %5d %-6s %8.2f us %s (%g)\n",n,T,V,blocks,groups,SHAPE?"shape":"free",us,note,got);fflush(stdout);}
template<int X,int T,int SHAPE> void col_case(int nr,int nc){
  auto f=[=](cudaStream_t s){columns<X,T,SHAPE><<<nc/X,X*T,0,s>>>(in,out,nr,nc);};
  double us=timed(f);CK(cudaGetLastError());std::vector<float> got(nc);CK(cudaMemcpy(got.data(),out,nc*4,cudaMemcpyDeviceToHost));
  int bad=0;if(SHAPE)for(int c=0;c<nc;c+=nc/37){float w=down(&host[c],nr,nc);if(memcmp(&w,&got[c],4))bad++;}
  printf("columns  %dx%d X=%d T=%d %-6s %8.2f us %s\n",nr,nc,X,T,SHAPE==0?"free":SHAPE==1?"shape":"shape2",us,SHAPE?bad?"WRONG BITS":"bits ok":"");fflush(stdout);}
int main(){
  size_t N=100000000;host.resize(N);unsigned s=1;for(size_t i=0;i<N;i++){s=s*1664525u+1013904223u;host[i]=(float)(s>>8)/(1<<24)-0.3f;}
  CK(cudaMalloc(&in,N*4));CK(cudaMalloc(&out,N*4));CK(cudaMalloc(&part,1<<24));CK(cudaMemcpy(in,host.data(),N*4,cudaMemcpyHostToDevice));
  row_both<16,1,128>(16384);
  row_both<16,4,128>(8192);
  row_both<64,4,128>(1024);row_both<64,4,64>(1024);
  row_case<128,2,0,1,128>(1024);row_case<32,8,0,1,128>(1024);row_case<32,8,1,1,128>(1024);row_case<128,2,0,0,128>(1024);row_case<32,8,1,0,128>(1024);
  row_both<256,4,256>(8192);row_both<128,8,128>(8192);
  row_both<1024,4,1024>(2048);row_both<512,8,512>(2048);
  whole_case<512,4,0>(10000000,264);whole_case<512,4,0>(10000000,528);whole_case<1024,4,0>(10000000,264);whole_case<1024,8,0>(10000000,264);
  whole_case<512,4,1>(10000000,264);whole_case<512,4,1>(10000000,528);whole_case<512,8,1>(10000000,528);whole_case<1024,4,1>(10000000,264);whole_case<1024,8,1>(10000000,264);whole_case<512,8,1>(10000000,0);whole_case<256,16,1>(10000000,0);whole_case<512,16,1>(10000000,0);whole_case<1024,8,1>(10000000,0);
  whole_case<512,4,0>(1000000,0);whole_case<512,4,1>(1000000,0);
  whole_case<1024,8,0>(100000000,264);whole_case<1024,8,1>(100000000,264);whole_case<512,8,0>(100000000,528);whole_case<512,16,1>(100000000,264);
  col_case<32,32,0>(8192,4096);col_case<32,32,1>(8192,4096);col_case<32,32,2>(8192,4096);col_case<32,16,0>(8192,4096);col_case<32,16,1>(8192,4096);col_case<16,32,0>(8192,4096);col_case<16,32,1>(8192,4096);
  col_case<32,32,0>(1024,1024);col_case<32,32,1>(1024,1024);col_case<8,32,0>(1024,1024);col_case<8,32,1>(1024,1024);
  return 0;}
