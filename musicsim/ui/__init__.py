"""The Streamlit app: pages, shared components and session state."""
